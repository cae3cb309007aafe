"""A third kind of response: the arm of a bandit, drawn from a table of logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from toys.words import ARMS
from waterline.allocation import Outcomes, Plan
from waterline.evaluation import SampledEvaluation, Subject, require_split
from waterline.losses import has_signal
from waterline.rollouts import Labels, LabelSampler
from waterline.runs import stream_key
from waterline.tasks import Prompt, require_whole_batches
from waterline.training.batches import further_rows, rows_at
from waterline.training.non_finite import NonFinite
from waterline.training.optimizer import OptimizerSettings
from waterline.training.reinforcement import ReinforcementStage
from waterline.training.step import Clock, Learned, Pieces

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class ArmTask:
    """Prompts are slots of a machine, and in each slot one word pays."""

    has_likelihood: ClassVar[bool] = False

    def __init__(self, slots: int, train: int, dev: int, test: int) -> None:
        ids = iter(range(train + dev + test))
        sizes = {"train": train, "dev": dev, "test": test}
        self.splits = {
            name: [self._prompt(next(ids), slots) for _ in range(size)]
            for name, size in sizes.items()
        }

    @staticmethod
    def _prompt(i: int, slots: int) -> Prompt:
        return Prompt(i, f"slot {i % slots}", (i % slots,), answer=ARMS[i % slots % len(ARMS)])


class ArmTable(nn.Module):
    """π(arm | slot) = softmax(logits[slot])."""

    responses: ClassVar[str] = "arms"
    precision = "float32"

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(slots, len(ARMS)))

    def forward(self, slot: Tensor) -> Tensor:
        """(B,) slots → (B, arms) log π in float64."""
        return self.logits[slot].double().log_softmax(dim=1)

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        return self.named_parameters()


def arm_table(slots: int) -> ArmTable:
    """The policy of a configuration."""
    return ArmTable(slots)


class ArmSampler(LabelSampler):
    """Draws arms as labels are drawn."""

    responses: ClassVar[str] = "arms"


@dataclass(frozen=True, eq=False)
class ArmResponses:
    """R sampled arms."""

    row: Ints
    group: Ints
    success: Bools
    reward: NDArray[np.float64]
    arm: Ints
    columns: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def length(self) -> Ints:
        return np.ones(len(self.row), dtype=np.int64)

    def kept(self, mask: Bools) -> ArmResponses:
        return ArmResponses(
            self.row[mask], self.group[mask], self.success[mask], self.reward[mask], self.arm[mask]
        )


class ArmCandidates:
    """Prompts, the policy's table for them, and the arms sampled so far; the same on all ranks."""

    p = None

    def __init__(
        self,
        prompts: Sequence[Prompt],
        policy: ArmTable,
        engine: ArmSampler,
        verifier: Any,
        key: int,
        add: Callable[[int, Ints], Sequence[Prompt]] = lambda k, ids: [],
    ) -> None:
        self.clock = Clock()
        self.prompts, self.policy, self.engine = list(prompts), policy, engine
        self.verifier, self.key, self.add = verifier, key, add
        nothing = np.zeros(0, dtype=np.int64)
        self.sampled = Labels(nothing, nothing)

    @property
    def ids(self) -> Ints:
        return np.array([prompt.id for prompt in self.prompts], dtype=np.int64)

    @property
    def slots(self) -> Tensor:
        return torch.tensor([prompt.tokens[0] for prompt in self.prompts])

    def sample(self, plan: Plan) -> Outcomes:
        with torch.no_grad():
            probability = self.policy(self.slots).exp().cpu().numpy()
        drawn = np.bincount(self.sampled.row, minlength=len(self.prompts))
        new = self.engine.sample(probability, self.ids, plan.counts, drawn, self.key)
        self.sampled, _ = self.sampled.joined(new)
        self.clock.lap("sample")
        found = self.responses()
        self.clock.lap("verify")
        self.prompts += self.add(plan.further, self.ids) if plan.further else []

        def total(values: NDArray[Any] | None = None) -> NDArray[Any]:
            return np.bincount(found.row, weights=values, minlength=len(self.prompts))

        successes = total(found.success).astype(np.int64)
        return Outcomes(total(), successes, {"reward": total(found.reward)})

    def responses(self) -> ArmResponses:
        row, arm = self.sampled.row, self.sampled.label
        answers = [self.prompts[i].answer for i in row.tolist()]
        words = [ARMS[a] for a in arm.tolist()]
        found = self.verifier(answers, words, np.ones(len(row), dtype=bool))
        return ArmResponses(row, self.ids[row], found.success, found.reward, arm)


class ArmStage(ReinforcementStage):
    """One optimizer step for each batch of slots."""

    responses: ClassVar[str] = "arms"

    def __init__(
        self,
        policy: ArmTable,
        task: ArmTask,
        pieces: Pieces,
        *,
        optimizer: OptimizerSettings,
        batch: int,
        steps: int,
        seed: int,
    ) -> None:
        self.prompts, self.batch = task.splits["train"], batch
        require_whole_batches(len(self.prompts), batch)
        per_epoch = len(self.prompts) // batch
        super().__init__(
            policy, task, pieces, optimizer=optimizer, steps=steps, seed=seed, per_epoch=per_epoch
        )

    def candidates(self, step: int) -> ArmCandidates:
        _, rows = rows_at(len(self.prompts), self.batch, self.seed, step)
        every = np.array([prompt.id for prompt in self.prompts])

        def add(k: int, ids: Ints) -> list[Prompt]:
            return [self.prompts[i] for i in further_rows(every, ids.tolist(), self.seed, step, k)]

        self.slots = ArmCandidates(
            [self.prompts[i] for i in rows], self.policy, self.pieces.engine,
            self.pieces.verifier, stream_key(self.seed, "rollout", step), add,
        )  # fmt: skip
        return self.slots

    def learn(self, responses: ArmResponses, advantage: Tensor, weight: Tensor) -> Learned:
        if not has_signal(advantage, weight):
            return Learned({"loss/value": 0.0}, stepped=False)
        # Each rank has all samples, and learns from those of its own prompts.
        own = np.flatnonzero(np.isin(responses.row, self.ranks.mine(len(self.slots.prompts))))
        log_probs = self.policy(self.slots.slots.to(self.device))
        logp = log_probs[responses.row[own], responses.arm[own]][:, None]
        loss = self.pieces.loss(
            logp=logp, old_logp=logp, advantage=advantage[own], weight=weight[own],
            mask=torch.ones(len(own), 1, dtype=torch.bool),
            denominator=self.pieces.loss.denominator(torch.from_numpy(responses.length)),
        )  # fmt: skip
        total = sum(self.ranks.gather(float(loss.detach())))
        if not np.isfinite(total):
            raise NonFinite(f"loss is {total}")
        self.backward_loss(loss)
        return Learned({"loss/value": total, "grad/norm": self.optimize()}, stepped=True)


class ArmEvaluation(SampledEvaluation):
    """Counts of paying arms among n draws for each prompt, and Pass@K from them."""

    responses = "arms"

    def measure(
        self,
        subject: Subject,
        split: str,
        step: int,
        folder: str | Path,
        progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> None:
        require_split(subject.task, split)
        prompts = subject.task.splits[split]
        key = stream_key(subject.seed, f"evaluation/{split}", 0)
        slots = ArmCandidates(prompts, subject.policy, subject.engine, subject.verifier, key)
        counts, ones = np.full(len(prompts), self.n), np.ones(len(prompts))
        plan = Plan(counts, ones, ones > 0, water_level=float("nan"), uniform=True)
        outcomes = slots.sample(plan)
        if subject.ranks.rank == 0:
            store = self.store(folder)
            store.write(step, split, slots.ids, outcomes.trials, outcomes.successes)
        progress(len(prompts), len(prompts))
