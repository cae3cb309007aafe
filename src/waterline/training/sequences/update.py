"""The update of a step on sequences: packed rows, one denominator, one gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from waterline.losses import PolicyLoss
from waterline.policies import SharedPrefixLM
from waterline.rollouts import ColumnPass, LeafRow, Ranks, Rollouts, pack_leaves
from waterline.runs.settings import Whole, check_fields
from waterline.training.non_finite import NonFinite
from waterline.training.sequences.candidates import Sequences
from waterline.training.step import Bools, Ints, Learned


@dataclass(frozen=True, kw_only=True)
class UpdateSettings:
    """How a batch of rollouts becomes optimizer steps.

    Args:
        minibatches: parts of the candidate batch, by prompt, each with an optimizer step.
        epochs: passes over the batch.
        max_tokens: tokens in one packed row.
    """

    minibatches: Whole = 1
    epochs: Whole = 1
    max_tokens: Whole = 16384

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass
class Diagnostics:
    """Sums over the tokens of a step's first pass, before any weight has changed."""

    entropy: float = 0.0
    tokens: int = 0
    logp_gap: float = 0.0
    loss: float = 0.0
    grad_norms: list[float] = field(default_factory=list)

    def see(self, rollouts: Rollouts, row: LeafRow, logp: Tensor, entropy: Tensor) -> None:
        """A row's log-probabilities and entropies (r, T), next to those of the engine."""
        mask = row.mask.to(logp.device)
        self.entropy += float(entropy.detach()[mask].double().sum())
        self.tokens += int(mask.sum())
        if mask.any():
            sampled = row.gathered(rollouts.columns["sampled_logp"]).to(logp.device)[mask]
            self.logp_gap = max(self.logp_gap, float((logp.detach()[mask] - sampled).abs().max()))


class _Batch:
    """Responses with their advantages (N,), weights (R,) and token columns.

    ``acts`` (R,) are those with a weighted advantage; NaN counts, so that it reaches the loss.
    """

    def __init__(self, found: Sequences, advantage: Tensor, weight: Tensor) -> None:
        self.found, self.advantage, self.weight = found, advantage, weight
        length = torch.from_numpy(found.length)
        self.first = length.cumsum(0) - length
        response = torch.arange(len(length)).repeat_interleave(length)
        acts = torch.zeros(len(length), dtype=torch.bool)
        acts[response[advantage != 0]] = True
        self.acts: Bools = (acts & (weight != 0)).numpy()

    def advantages(self, chosen: Ints, row: LeafRow) -> Tensor:
        """(r, T) of the responses ``chosen`` of a row."""
        place = self.first[torch.from_numpy(chosen)][:, None] + torch.arange(row.mask.shape[1])
        return self.advantage[place.clamp(max=max(0, len(self.advantage) - 1))]

    def contents(self) -> dict[str, Any]:
        """Tensors, numbers and lists, as a file can hold them."""
        rollouts = asdict(self.found.rollouts)
        columns = rollouts.pop("columns")
        verdict = rollouts.pop("verdict").tolist()
        return {
            "rollouts": {name: torch.from_numpy(a) for name, a in (rollouts | columns).items()},
            "verdict": verdict,
            "node": torch.from_numpy(self.found.node),
            "length": torch.from_numpy(self.found.length),
            "advantage": self.advantage,
            "weight": self.weight,
        }


@dataclass
class PolicyUpdate:
    """Takes the optimizer steps of a batch.

    Args:
        policy: trained; ``reference``: frozen, for a KL term.
        loss: its denominator is that of the whole step, D, over all ranks. A minibatch of b of the
            |A| active prompts is divided by D·b/|A|, so that each prompt counts the same whatever
            count it has.
        optimize: takes one optimizer step and gives the gradient norm before clipping.
        step_on_no_signal: whether the optimizer steps although nothing has a gradient, so that
            momentum and weight decay act, as in the papers' code.
    """

    policy: SharedPrefixLM
    loss: PolicyLoss
    optimize: Callable[[], float]
    backward: Callable[[Tensor], None]
    settings: UpdateSettings = field(default_factory=UpdateSettings)
    temperature: float = 1.0
    step_on_no_signal: bool = False
    reference: SharedPrefixLM | None = None
    ranks: Ranks = field(default_factory=Ranks)
    # What a pass before the advantages has seen of the policy, until the update that follows.
    seen: Diagnostics | None = None

    @property
    def columns(self) -> list[str]:
        """The token columns that the loss reads; on-policy there is none, and no extra pass."""
        off_policy = self.settings.minibatches * self.settings.epochs > 1
        return ["old_logp"] * off_policy + ["ref_logp"] * self.loss.needs_reference

    def fill(self, found: Sequences, names: Sequence[str]) -> Rollouts:
        """The table with the columns ``names``, which an advantage reads, and those of the loss."""
        return self._fill(found, {*names, *self.columns}, np.ones(len(found.node), dtype=bool))

    def _fill(self, found: Sequences, names: set[str], first: Bools) -> Rollouts:
        table, seen = found.rollouts, Diagnostics()
        rows = (row for row, _ in self._rows(found, np.arange(len(found.node)), first))
        passed = ColumnPass(self.policy, self.reference, self.temperature, self.ranks)
        filled = passed.fill(table, rows, sorted(names), lambda *row: seen.see(table, *row))
        if names - {"ref_logp"}:
            self.seen = seen
        return filled

    def __call__(self, found: Sequences, advantage: Tensor, weight: Tensor) -> Learned:
        """Learns from the responses with their advantages (N,) and weights (R,).

        Raises:
            NonFinite: A loss or a gradient is NaN or infinite, on all ranks at once.
        """
        batch = _Batch(found, advantage, weight)
        learns = batch.acts | self.loss.acts_without_advantage
        if missing := {*self.columns} - {*found.rollouts.columns}:
            batch.found = replace(found, rollouts=self._fill(found, missing, learns))
        # The sums are of the first pass: that of the columns, or else that of the loss itself.
        observe, seen, self.seen = self.seen is None, self.seen or Diagnostics(), None
        try:
            minibatches = self._minibatches(batch)
            for epoch in range(self.settings.epochs):
                for members, denominator in minibatches:
                    loss = self._step(batch, members, denominator, learns, seen, observe)
                    seen.loss += loss if epoch == 0 else 0.0
        except NonFinite as error:
            error.batch = batch.contents()
            raise
        return self._learned(seen)

    def _minibatches(self, batch: _Batch) -> list[tuple[Ints, float]]:
        """The responses of each minibatch and its denominator, by active prompts in their order.

        The prompts that an allocator has dropped after it sampled them are spread over the parts:
        their responses count in D, and act through the terms that read no advantage.
        """
        found = batch.found
        rows = np.unique(found.row)
        active = np.isin(rows, found.row[batch.weight.numpy() != 0])
        if not active.any():
            active[:] = True
        count = max(1, min(self.settings.minibatches, int(active.sum())))
        parts = np.array_split(rows[active], count)
        dropped = np.array_split(rows[~active], count)
        whole = self.loss.denominator(torch.from_numpy(found.length))
        shares = [len(part) / max(1, int(active.sum())) for part in parts]
        return [
            (np.flatnonzero(np.isin(found.row, np.concatenate(pair))), whole * share)
            for pair, share in zip(zip(parts, dropped, strict=True), shares, strict=True)
        ]

    def _step(
        self, batch: _Batch, members: Ints, denominator: float, learns: Bools, seen: Diagnostics,
        observe: bool,
    ) -> float:  # fmt: skip
        total, bad = 0.0, None
        found, columns = batch.found, batch.found.rollouts.columns
        for row, chosen in self._rows(found, members, learns):
            acts = bool(learns[chosen].any())
            if not (acts or observe):
                continue
            # Rows without a gradient are run for the diagnostics alone.
            with nullcontext() if acts else torch.no_grad():
                logp, entropy = self.policy(
                    row.row, self.temperature, entropy=True, entropy_grad=self.loss.needs_entropy
                )
                logp, entropy = row.unrolled(logp), row.unrolled(entropy)
            if observe:
                seen.see(found.rollouts, row, logp, entropy)
            if not acts:
                continue
            device = logp.device
            read = {name: row.gathered(columns[name]).to(device) for name in self.columns}
            loss = self.loss(
                logp=logp,
                old_logp=read.get("old_logp", logp),
                advantage=batch.advantages(chosen, row).to(device),
                weight=batch.weight[chosen].to(device),
                mask=row.mask.to(device),
                ref_logp=read.get("ref_logp"),
                entropy=entropy if self.loss.needs_entropy else None,
                denominator=denominator,
            )
            value = float(loss.detach())
            if not math.isfinite(value):
                bad = value
                break
            total += value
            self.backward(loss)
        if wrong := [value for value in self.ranks.gather(bad) if value is not None]:
            raise NonFinite(f"loss is {wrong[0]}")
        if learns[members].any() or self.step_on_no_signal:
            seen.grad_norms.append(self.optimize())
        return total

    def _rows(
        self, found: Sequences, members: Ints, first: Bools
    ) -> Iterator[tuple[LeafRow, Ints]]:
        """This rank's rows and their responses; those of ``first`` are packed apart, and first."""
        prompts = 1 + int(found.row.max(initial=-1))
        own = members[np.isin(found.row[members], self.ranks.mine(prompts))]
        for part in (own[first[own]], own[~first[own]]):
            for row in pack_leaves(found.rollouts, found.node[part], self.settings.max_tokens):
                yield row, part[row.leaf]

    def _learned(self, seen: Diagnostics) -> Learned:
        parts = self.ranks.gather(seen)
        tokens = max(1, sum(part.tokens for part in parts))
        metrics = {
            "loss/value": sum(part.loss for part in parts),
            "policy/entropy": sum(part.entropy for part in parts) / tokens,
            "engine/logp_gap": max(part.logp_gap for part in parts),
        }
        if seen.grad_norms:
            metrics["grad/norm"] = float(np.mean(seen.grad_norms))
        return Learned(metrics, stepped=bool(seen.grad_norms))
