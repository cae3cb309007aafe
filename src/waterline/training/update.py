"""The update of a step: packed rows, one denominator, one gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from waterline.losses import PolicyLoss
from waterline.policies import SharedPrefixLM
from waterline.rollouts import LeafRow, Rollouts, pack_leaves
from waterline.training.non_finite import NonFinite
from waterline.training.ranks import Ranks


@dataclass(frozen=True)
class Batch:
    """Verified responses with what the loss needs; arrays over the R leaves of a step."""

    rollouts: Rollouts
    node: np.ndarray
    prompt_row: np.ndarray  # the row in the candidate batch
    advantage: Tensor
    weight: Tensor
    length: Tensor  # model tokens

    def contents(self) -> dict[str, Any]:
        """Tensors, numbers and lists, as a file can hold them."""
        rollouts = asdict(self.rollouts)
        scores = {node: list(score) for node, score in rollouts.pop("scores").items()}
        return {
            "rollouts": {name: torch.from_numpy(array) for name, array in rollouts.items()},
            "scores": scores,
            "node": torch.from_numpy(self.node),
            "advantage": self.advantage,
            "weight": self.weight,
        }


@dataclass
class Diagnostics:
    """Sums over the tokens of a step's first pass, before any weight has changed."""

    entropy: float = 0.0
    tokens: int = 0
    logp_gap: float = 0.0
    loss: float = 0.0
    grad_norms: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Update:
    """How a batch becomes optimizer steps.

    Args:
        policy: trained; ``reference``: frozen, for a KL term.
        loss: options of the loss; its denominator is that of a whole minibatch, over all ranks.
        optimize: takes one optimizer step and gives the gradient norm before clipping.
        minibatches: parts of the candidate batch, by prompt, each with an optimizer step.
        epochs: passes over the batch.
        max_tokens: tokens in one packed row.
        step_on_no_signal: whether the optimizer steps although nothing has a gradient, so that
            momentum and weight decay act, as in the papers' code.
    """

    policy: SharedPrefixLM
    loss: PolicyLoss
    optimize: Callable[[], float]
    backward: Callable[[Tensor], None]
    temperature: float = 1.0
    minibatches: int = 1
    epochs: int = 1
    max_tokens: int = 16384
    step_on_no_signal: bool = False
    reference: SharedPrefixLM | None = None
    ranks: Ranks = field(default_factory=Ranks)

    def __call__(self, batch: Batch) -> Diagnostics:
        """Takes the optimizer steps of a batch.

        Raises:
            NonFinite: A loss or a gradient is NaN or infinite.
        """
        seen = Diagnostics()
        try:
            on_policy = self.minibatches * self.epochs == 1
            old = None if on_policy else self._log_probs(self.policy, batch, seen)
            reference = None
            if self.loss.needs_reference:
                assert self.reference is not None
                reference = self._log_probs(self.reference, batch)
            # By active prompts in the batch's order, whatever rank they are on.
            parts = np.array_split(np.unique(batch.prompt_row), self.minibatches)
            for epoch in range(self.epochs):
                for part in parts:
                    members = np.flatnonzero(np.isin(batch.prompt_row, part))
                    loss = self._step(batch, members, old, reference, seen)
                    seen.loss += loss if epoch == 0 else 0.0
        except NonFinite as error:
            error.batch = batch.contents()
            raise
        return seen

    def _step(
        self,
        batch: Batch,
        members: np.ndarray,
        old: dict[int, Tensor] | None,
        reference: dict[int, Tensor] | None,
        seen: Diagnostics,
    ) -> float:
        total, bad = 0.0, None
        lengths = batch.length[members]
        denominator = self.loss.denominator(lengths)
        acts = self.loss.has_signal(batch.advantage[members], batch.weight[members])
        for row, chosen in self._rows(batch, members):
            advantage, weight = batch.advantage[chosen], batch.weight[chosen]
            # Rows without a gradient are run for the diagnostics alone.
            learns = self.loss.has_signal(advantage, weight)
            with nullcontext() if learns else torch.no_grad():
                logp, entropy = self.policy(row.row, self.temperature, entropy=True)
                logp, entropy = row.unrolled(logp), row.unrolled(entropy)
            mask = row.mask.to(logp.device)
            if old is None:
                self._observe(batch, row, chosen, logp, entropy, mask, seen)
            if not learns:
                continue
            loss = self.loss(
                logp=logp,
                old_logp=logp if old is None else _rows_of(old, chosen, mask),
                advantage=advantage.to(logp.device),
                weight=weight.to(logp.device),
                mask=mask,
                ref_logp=None if reference is None else _rows_of(reference, chosen, mask),
                entropy=entropy if self.loss.needs_entropy else None,
                denominator=denominator,
            )
            value = float(loss.detach())
            if not math.isfinite(value):
                bad = value
                break
            total += value
            self.backward(loss)
        found = [value for value in self.ranks.gather(bad) if value is not None]
        if found:
            raise NonFinite(f"loss is {found[0]}")
        if acts or self.step_on_no_signal:
            seen.grad_norms.append(self.optimize())
        return total

    def _rows(self, batch: Batch, members: np.ndarray) -> Iterator[tuple[LeafRow, np.ndarray]]:
        """This rank's rows; leaves with a gradient are packed apart from those without."""
        mine = np.isin(batch.prompt_row[members], self.ranks.mine(1 + int(batch.prompt_row.max())))
        own = members[mine]
        weighted = ((batch.advantage != 0) & (batch.weight != 0)).numpy()[own]
        signal = weighted | self.loss.needs_reference | self.loss.needs_entropy
        for part in (own[signal], own[~signal]):
            for row in pack_leaves(batch.rollouts, batch.node[part], self.max_tokens):
                yield row, part[row.leaf]

    @torch.no_grad()
    def _log_probs(
        self, policy: SharedPrefixLM, batch: Batch, seen: Diagnostics | None = None
    ) -> dict[int, Tensor]:
        """Each of this rank's leaves' log-probabilities before the update."""
        values: dict[int, Tensor] = {}
        for row, chosen in self._rows(batch, np.arange(len(batch.node))):
            logp, entropy = policy(row.row, self.temperature, entropy=seen is not None)
            logp = row.unrolled(logp)
            if seen is not None:
                mask = row.mask.to(logp.device)
                self._observe(batch, row, chosen, logp, row.unrolled(entropy), mask, seen)
            for r, leaf in enumerate(chosen.tolist()):
                values[leaf] = logp[r, row.mask[r].to(logp.device)]
        return values

    def _observe(
        self,
        batch: Batch,
        row: LeafRow,
        chosen: np.ndarray,
        logp: Tensor,
        entropy: Tensor,
        mask: Tensor,
        seen: Diagnostics,
    ) -> None:
        seen.entropy += float(entropy.detach()[mask].double().sum())
        seen.tokens += int(mask.sum())
        rollouts = batch.rollouts
        sampled = [
            rollouts.span_logp(n)
            for leaf in batch.node[chosen].tolist()
            for n in rollouts.path(leaf)
            if rollouts.sample[n] >= 0
        ]
        engine = torch.from_numpy(np.concatenate(sampled)).to(logp.device)
        gap = float((logp.detach()[mask] - engine).abs().max())
        seen.logp_gap = max(seen.logp_gap, gap)


def _rows_of(values: dict[int, Tensor], chosen: np.ndarray, mask: Tensor) -> Tensor:
    rows = torch.zeros(mask.shape, device=mask.device)
    for r, leaf in enumerate(chosen.tolist()):
        rows[r, mask[r]] = values[leaf].to(rows.dtype)
    return rows
