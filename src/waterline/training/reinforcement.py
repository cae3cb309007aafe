"""Reinforcement learning with verifiable rewards, for all sequence tasks."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from waterline.allocation import UniformAllocator
from waterline.losses import PolicyLoss
from waterline.policies import SharedPrefixLM
from waterline.rollouts import SamplingParams
from waterline.runs import stream_key
from waterline.tasks.task import require_whole_batches
from waterline.training.metrics import allocation_frame, step_metrics
from waterline.training.stage import OptimizerSettings, Row, Stage, rows_at
from waterline.training.step import Pieces, StepRecord, run_step
from waterline.training.update import Update

log = logging.getLogger("waterline")
# The share of training prompts without a success from which on a run is warned.
_WEAK_BASE = 0.5


@dataclass(frozen=True, kw_only=True)
class UpdateSettings:
    """How a batch of rollouts becomes optimizer steps; see :class:`Update`."""

    minibatches: int = 1
    epochs: int = 1
    max_tokens: int = 16384
    step_on_no_signal: bool = False

    def __post_init__(self) -> None:
        if min(self.minibatches, self.epochs, self.max_tokens) < 1:
            raise ValueError(
                f"training.update has minibatches={self.minibatches}, epochs={self.epochs} and "
                f"max_tokens={self.max_tokens}: each at least 1."
            )


class ReinforcementStage(Stage):
    """One :func:`run_step` per training step over the split ``train``.

    Args:
        pieces: what the method and the task put into the rooms.
        batch: candidate prompts B per step. temperature: of sampling and of the gradient.
        loss: the loss; its reference policy is a frozen copy of the start when it has a KL term.
    """

    def __init__(
        self,
        policy: SharedPrefixLM,
        pieces: Pieces,
        loss: PolicyLoss,
        *,
        optimizer: OptimizerSettings,
        update: UpdateSettings,
        batch: int,
        steps: int,
        seed: int,
        temperature: float = 1.0,
        reference: SharedPrefixLM | None = None,
    ) -> None:
        super().__init__(policy, optimizer, steps, seed)
        self.prompts = pieces.task.splits["train"]
        require_whole_batches(len(self.prompts), batch)
        self.pieces = replace(pieces, ranks=self.ranks)
        self.batch, self.temperature = batch, temperature
        self.reference = reference
        self.update = Update(
            policy=policy,
            loss=loss,
            optimize=self.optimize,
            backward=self.backward_loss,
            temperature=temperature,
            minibatches=update.minibatches,
            epochs=update.epochs,
            max_tokens=update.max_tokens,
            step_on_no_signal=update.step_on_no_signal,
            reference=reference,
            ranks=self.ranks,
        )
        self.totals = {"rollouts": 0, "tokens": 0, "skipped": 0, "solved_at_first": 0}
        self.record: StepRecord | None = None
        self.skipped = False  # whether the last step had no signal

    @property
    def steps_per_epoch(self) -> int:
        return len(self.prompts) // self.batch

    def take_step(self, step: int) -> Row:
        began = time.perf_counter()
        epoch, rows = rows_at(len(self.prompts), self.batch, self.seed, step)
        task = self.pieces.task
        params = SamplingParams(
            key=stream_key(self.seed, "rollout", step),
            max_tokens=task.max_response,
            stop=task.stop_tokens,
            temperature=self.temperature,
        )
        self.pieces.engine.sync(self.policy.named_parameters(), version=step)
        self.record = run_step(self.pieces, [self.prompts[i] for i in rows], params, self.update)
        if (step + 1) % self.steps_per_epoch == 0:
            self.pieces.success.end_epoch()
        if epoch == 0:
            self.totals["solved_at_first"] += int((self.record.successes > 0).sum())
            if step + 1 == self.steps_per_epoch:
                self._warn_of_a_weak_base()
        seconds = time.perf_counter() - began
        self.skipped = not self.record.diagnostics.grad_norms
        return {
            "epoch": epoch,
            "lr": self.settings.lr_at(step, self.steps),
            **step_metrics(self.record, self.totals, self.ranks, seconds),
        }

    def allocation(self) -> pd.DataFrame | None:
        return None if self.record is None else allocation_frame(self.record)

    def skips(self) -> int | None:
        return self.totals["skipped"] if self.skipped else None

    def _warn_of_a_weak_base(self) -> None:
        """After the first epoch: an allocator that equalises has little to go by."""
        share = 1 - self.totals["solved_at_first"] / len(self.prompts)
        if share > _WEAK_BASE and not isinstance(self.pieces.allocator, UniformAllocator):
            log.warning(
                "%.0f%% of the training prompts had no success in the first epoch: from such a "
                "base the waterline can learn more slowly than uniform counts; train it longer, "
                "raise allocation.n0, or begin with method=maxrl (docs/methods/sera.md says why)",
                100 * share,
            )

    def run_state(self) -> dict[str, Any]:
        state = super().run_state()
        return state | {"success": self.pieces.success.state_dict(), "totals": dict(self.totals)}

    def load_run_state(self, state: dict[str, Any]) -> None:
        super().load_run_state(state)
        self.pieces.success.load_state_dict(state["success"])
        self.totals.update(state["totals"])
