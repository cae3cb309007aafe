"""Supervised training from scratch on demonstrations."""

from __future__ import annotations

import math
import time
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from waterline.policies import PackedRow, SharedPrefixLM, TreeLayout
from waterline.tasks.task import Prompt, Task
from waterline.training.non_finite import NonFinite
from waterline.training.stage import OptimizerSettings, Row, Stage, rows_at


@runtime_checkable
class DemonstratedTask(Task, Protocol):
    """A task that knows what a good response looks like."""

    def target(self, prompt: Prompt) -> tuple[int, ...]: ...


class SupervisedStage(Stage):
    """Cross-entropy on the tokens of the demonstrations, mean over the tokens of the batch.

    Args:
        prompts: the split ``sft``. targets: each prompt's demonstration as tokens.
        batch: demonstrations per optimizer step.
    """

    def __init__(
        self,
        policy: SharedPrefixLM,
        prompts: list[Prompt],
        targets: list[tuple[int, ...]],
        *,
        optimizer: OptimizerSettings,
        batch: int,
        steps: int,
        seed: int,
    ) -> None:
        super().__init__(policy, optimizer, steps, seed)
        self.prompts, self.targets, self.batch = prompts, targets, batch
        rows_at(len(prompts), batch, seed, 0)  # a batch that cannot be filled is found here

    def take_step(self, step: int) -> Row:
        began = time.perf_counter()
        epoch, rows = rows_at(len(self.prompts), self.batch, self.seed, step)
        mine = [rows[i] for i in self.ranks.mine(len(rows))]
        tokens = sum(len(self.targets[i]) for i in rows)
        loss = torch.zeros((), device=self.device)
        if mine:
            row = demonstrations(
                [self.prompts[i].tokens for i in mine], [self.targets[i] for i in mine]
            )
            logp, _ = self.policy(row)
            loss = -logp.sum() / tokens
            self.backward_loss(loss)
        total = sum(self.ranks.gather(float(loss.detach())))
        batch = {"prompts": [self.prompts[i].id for i in rows]}
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
