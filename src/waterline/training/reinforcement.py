"""Reinforcement learning with verifiable rewards: what all kinds of responses share."""

from __future__ import annotations

import logging
import time
from typing import Any, ClassVar

import pandas as pd
from torch import Tensor, nn

from waterline.evaluation import Subject
from waterline.training.metrics import accuracy_metrics, allocation_frame, allocation_metrics
from waterline.training.optimizer import OptimizerSettings
from waterline.training.stage import Row, Stage
from waterline.training.step import Candidates, Learned, Pieces, StepRecord, run_step

log = logging.getLogger("waterline")
# The share of training prompts without a success from which on a run is warned.
_WEAK_BASE = 0.5
_NONE = float("nan")


class ReinforcementStage(Stage):
    """One :func:`run_step` per training step over the split ``train``.

    A subclass knows one kind of response: it makes the candidates of a step and learns from what
    was sampled.

    Args:
        task: whose prompts are trained on. pieces: what method and task put into the rooms.
        per_epoch: steps in one pass over the training prompts.
    """

    responses: ClassVar[str]
    """The kind of responses; policy and engine must name the same."""

    def __init__(
        self,
        policy: nn.Module,
        task: Any,
        pieces: Pieces,
        *,
        optimizer: OptimizerSettings,
        steps: int,
        seed: int,
        per_epoch: int,
    ) -> None:
        super().__init__(policy, optimizer, steps, seed)
        self.task, self.pieces, self.per_epoch = task, pieces, per_epoch
        self.totals = {"rollouts": 0, "tokens": 0, "skipped": 0, "solved_at_first": 0}
        self.record: StepRecord | None = None

    def candidates(self, step: int) -> Candidates | None:
        """The candidates of a step; None when there is none to learn from."""
        raise RuntimeError(f"{type(self).__name__} makes no candidates.")

    def learn(self, responses: Any, advantage: Tensor, weight: Tensor) -> Learned:
        """Changes the policy; see :func:`run_step`."""
        raise RuntimeError(f"{type(self).__name__} does not learn.")

    def close(self) -> None:
        self.pieces.engine.close()

    def subject(self) -> Subject:
        """What an evaluation measures."""
        return Subject(
            task=self.task, policy=self.policy, engine=self.pieces.engine,
            verifier=self.pieces.verifier, ranks=self.ranks, seed=self.seed, version=self.done,
        )  # fmt: skip

    def take_step(self, step: int) -> Row:
        began = time.perf_counter()
        candidates = self.candidates(step)
        self.record = None
        if candidates is not None:
            progress = step / self.steps
            self.record = run_step(self.pieces, candidates, self.learn, progress)
        if (step + 1) % self.per_epoch == 0:
            self.pieces.success.end_epoch()
        self._count(step)
        seconds = time.perf_counter() - began
        row = {"epoch": step // self.per_epoch, "lr": self.settings.lr_at(step, self.steps)}
        return row | self._metrics(seconds) | {"time/step": seconds}

    def _count(self, step: int) -> None:
        """Adds the step to the totals of the run."""
        record = self.record
        self.totals["skipped"] += record is None or not record.learned.stepped
        if record is None:
            return
        self.totals["rollouts"] += int(record.outcomes.trials.sum())
        if "tokens" in record.outcomes.columns:
            self.totals["tokens"] += int(record.outcomes.columns["tokens"].sum())
        if step < self.per_epoch:
            self.totals["solved_at_first"] += int((record.outcomes.successes > 0).sum())
            if step + 1 == self.per_epoch:
                self._warn_of_a_weak_base()

    def _metrics(self, seconds: float) -> Row:
        row: Row = {"grad/norm": _NONE, "grad/skipped": float(self.totals["skipped"])}
        if (record := self.record) is None:
            return row | {"loss/value": _NONE}
        row |= record.learned.metrics
        row |= {f"time/{part}": spent for part, spent in record.seconds.items()}
        if not self.pieces.allocator.reads_budget:
            return row  # nothing is sampled
        outcomes = record.outcomes
        rollouts = int(outcomes.trials.sum())
        row["reward/mean"] = (
            float(outcomes.columns["reward"].sum()) / rollouts if rollouts else _NONE
        )
        row |= allocation_metrics(record, seconds) | accuracy_metrics(record)
        row["rollouts/total"] = float(self.totals["rollouts"])
        if "tokens" in outcomes.columns:
            row["rollouts/tokens"] = tokens = float(outcomes.columns["tokens"].sum())
            row["response/length"] = tokens / rollouts if rollouts else _NONE
            verdicts = {k: v for k, v in outcomes.columns.items() if k.startswith("verdict/")}
            row |= {
                k: float(v.sum()) / rollouts if rollouts else _NONE for k, v in verdicts.items()
            }
            row["rollouts/total_tokens"] = float(self.totals["tokens"])
        return row

    def allocation(self) -> pd.DataFrame | None:
        """What the last step gave each candidate; None where nothing is sampled."""
        sampled = self.record is not None and self.pieces.allocator.reads_budget
        return allocation_frame(self.record) if sampled and self.record else None

    def skips(self) -> int | None:
        """How many steps had no signal so far, when the last one had none; else None."""
        without = self.record is not None and not self.record.learned.stepped
        return self.totals["skipped"] if without else None

    def _warn_of_a_weak_base(self) -> None:
        """After the first epoch: an allocator that equalises has little to go by."""
        pieces = self.pieces
        share = 1 - self.totals["solved_at_first"] / len(self.task.splits["train"])
        by_history = pieces.allocator.estimates == "given" and pieces.success.source == "history"
        if share > _WEAK_BASE and by_history:
            log.warning(
                "%.0f%% of the training prompts had no success in the first epoch: from such a "
                "base the waterline can learn more slowly than uniform counts; train it longer, "
                "raise allocation.n0, or begin with method=maxrl (docs/methods/sera.md says why)",
                100 * share,
            )

    def run_state(self) -> dict[str, Any]:
        return super().run_state() | {
            "success": self.pieces.success.state_dict(),
            "allocator": self.pieces.allocator.state_dict(),
            "totals": dict(self.totals),
        }

    def load_run_state(self, state: dict[str, Any]) -> None:
        super().load_run_state(state)
        self.pieces.success.load_state_dict(state["success"])
        self.pieces.allocator.load_state_dict(state["allocator"])
        self.totals.update(state["totals"])
