"""Supervised training from scratch on demonstrations."""

from __future__ import annotations

import math
import time
from typing import Any, Protocol

import numpy as np
import torch

from waterline.evaluation import Subject, require_split
from waterline.policies import PackedRow, SharedPrefixLM, TreeLayout
from waterline.rewards import Verifier
from waterline.rollouts import Engine, RankedEngine
from waterline.runs.settings import Seed, Whole
from waterline.tasks import Prompt, Task
from waterline.training.batches import rows_at
from waterline.training.non_finite import NonFinite
from waterline.training.optimizer import OptimizerSettings
from waterline.training.stage import Row, Stage
from waterline.training.until import Until


class DemonstratedTask(Task, Protocol):
    """A task that knows what a good response looks like."""

    def target(self, prompt: Prompt) -> tuple[int, ...]: ...


class SupervisedStage(Stage):
    """Cross-entropy on the tokens of the demonstrations, mean over the tokens of the batch.

    Args:
        task: its split ``sft`` is trained on. batch: demonstrations per optimizer step.
        until: the rule that ends it before ``steps``; it must be met by then.
        engine, verifier: sample and judge what ``until`` asks for.
    """

    policy: SharedPrefixLM

    def __init__(
        self,
        policy: SharedPrefixLM,
        task: DemonstratedTask,
        *,
        optimizer: OptimizerSettings,
        batch: Whole,
        steps: Whole,
        seed: Seed,
        until: Until | None = None,
        engine: Engine | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        super().__init__(policy, optimizer, steps, seed)
        require_split(task, "sft")
        self.prompts, self.batch = task.splits["sft"], batch
        self.task, self.target = task, task.target
        self.until, self.engine, self.verifier = until, engine, verifier
        rows_at(len(self.prompts), batch, seed, 0)  # a batch that cannot be filled is found here

    def subject(self) -> Subject:
        assert self.engine is not None
        assert self.verifier is not None
        return Subject(
            task=self.task, policy=self.policy, engine=RankedEngine(self.engine, self.ranks),
            verifier=self.verifier, ranks=self.ranks, seed=self.seed, version=self.done,
        )  # fmt: skip

    def ends(self, row: Row) -> bool:
        return self.until is not None and self.until.met(row, self.done == self.steps)

    def run_state(self) -> dict[str, Any]:
        return super().run_state() | {"steps": self.steps}

    def load_run_state(self, state: dict[str, Any]) -> None:
        super().load_run_state(state)
        self.steps = state.get("steps", self.steps)

    def take_step(self, step: int) -> Row:
        began = time.perf_counter()
        epoch, rows = rows_at(len(self.prompts), self.batch, self.seed, step)
        prompts = [self.prompts[i] for i in rows]
        targets = [self.target(prompt) for prompt in prompts]
        mine = self.ranks.mine(len(rows))
        tokens = sum(map(len, targets))
        loss = torch.zeros((), device=self.device)
        if mine:
            row = demonstrations([prompts[i].tokens for i in mine], [targets[i] for i in mine])
            logp, _ = self.policy(row)
            loss = -logp.sum() / tokens
            self.backward_loss(loss)
        total = sum(self.ranks.gather(float(loss.detach())))
        batch = {"prompts": [prompt.id for prompt in prompts]}
        if not math.isfinite(total):
            raise NonFinite(f"loss is {total}", batch)
        try:
            norm = self.optimize()
        except NonFinite as error:
            error.batch = batch
            raise
        return {
            "epoch": epoch,
            "loss/value": total,
            "grad/norm": norm,
            "lr": self.settings.lr_at(step, self.steps),
            "time/step": time.perf_counter() - began,
        }


def demonstrations(prompts: list[tuple[int, ...]], targets: list[tuple[int, ...]]) -> PackedRow:
    """A packed row of whole sequences, asked about the demonstrations' tokens."""
    sequences = [np.array(p + t, dtype=np.int64) for p, t in zip(prompts, targets, strict=True)]
    layout = TreeLayout(
        np.full(len(sequences), -1, dtype=np.int64), np.array([len(s) for s in sequences])
    )
    predictor = [
        start + np.arange(len(p) - 1, len(p) + len(t) - 1)
        for start, p, t in zip(layout.start, prompts, targets, strict=True)
    ]
    return PackedRow(
        layout,
        torch.from_numpy(np.concatenate(sequences)),
        torch.from_numpy(np.concatenate(predictor)),
        torch.from_numpy(np.concatenate([np.array(t, dtype=np.int64) for t in targets])),
    )
