"""Keeps a run: metrics, allocations, evaluations and checkpoints, in an order that survives kills."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytorch_lightning as pl

from waterline.runs import RunFolder, atomic_write
from waterline.training.checkpoints import Checkpoints
from waterline.training.mirror import NoMirror, WandbMirror
from waterline.training.reinforcement import ReinforcementStage
from waterline.training.stage import Row, Stage

log = logging.getLogger("waterline")


class RunKeeper(pl.Callback):
    """Writes a step's row, then, where due, its evaluation and a checkpoint.

    A checkpoint is written last and replaces the former at once, so whatever the moment of a kill,
    the run goes on from a step whose rows, allocations and counts are on the disk; rows beyond it
    are set aside and made again.

    Args:
        folder: of the run, locked by this process.
        checkpoint_every: steps between checkpoints.
        evaluate: evaluates the policy after a step and gives metrics; None for never.
        evaluate_every: steps between evaluations, which also keep the policy's weights.
        log_every: steps between lines of the log.
    """

    def __init__(
        self,
        folder: RunFolder,
        mirror: NoMirror | WandbMirror,
        *,
        checkpoint_every: int,
        evaluate: Callable[[Stage, int], Row] | None = None,
        evaluate_every: int = 0,
        log_every: int = 10,
    ) -> None:
        self.folder, self.mirror = folder, mirror
        self.checkpoints = Checkpoints(folder.checkpoints)
        self.checkpoint_every = checkpoint_every
        self.evaluate, self.evaluate_every = evaluate, evaluate_every
        self.log_every = log_every
        self.allocations: list[pd.DataFrame] = []

    def on_train_start(self, trainer: pl.Trainer, stage: pl.LightningModule) -> None:
        assert isinstance(stage, Stage)
        self.metrics = self.folder.open_metrics()
        moved = self.metrics.truncate_after(stage.done)
        if stage.done:
            log.info("continuing after step %d (%d later rows set aside)", stage.done, moved)
        elif self._evaluates(0):
            row = {"step": 0, **self._evaluated(stage, 0)}
            self.checkpoints.save(self.checkpoints.at(0), _weights(stage))
            self._write(row)

    def on_train_batch_end(
        self, trainer: pl.Trainer, stage: pl.LightningModule, *_: Any, **__: Any
    ) -> None:
        assert isinstance(stage, Stage)
        step, row = stage.done, dict(stage.row)
        last = step == stage.steps
        if isinstance(stage, ReinforcementStage) and stage.record is not None:
            self.allocations.append(_allocation(step, stage))
        if self._evaluates(step) or (last and self.evaluate is not None):
            row |= self._evaluated(stage, step)
            self.checkpoints.save(self.checkpoints.at(step), _weights(stage))
        self._write(row)
        if step % self.log_every == 0 or last:
            log.info(_line(row, stage.steps))
        if step % self.checkpoint_every == 0 or last:
            self._checkpoint(stage)

    def on_exception(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the files; what was not checkpointed is made again on resume."""
        if hasattr(self, "metrics"):
            self.metrics.close()
        self.mirror.close()

    def _evaluates(self, step: int) -> bool:
        due = self.evaluate_every > 0 and step % self.evaluate_every == 0
        return self.evaluate is not None and due

    def _evaluated(self, stage: Stage, step: int) -> Row:
        assert self.evaluate is not None
        return self.evaluate(stage, step)

    def _write(self, row: Row) -> None:
        if self.metrics.last_step is not None and row["step"] <= self.metrics.last_step:
            return  # the evaluation before the first step, when a run is killed right after it
        self.metrics.append(row)
        self.mirror.log(row)

    def _checkpoint(self, stage: Stage) -> None:
        if self.allocations:
            rows = pd.concat(self.allocations, ignore_index=True)
            sink = io.BytesIO()
            rows.to_parquet(sink, index=False)
            name = f"{rows['step'].iloc[0]}-{rows['step'].iloc[-1]}.parquet"
            atomic_write(self.folder.allocation / name, sink.getvalue())
            self.allocations = []
        self.metrics.sync()
        if stage.done == stage.steps:
            self.checkpoints.save(self.checkpoints.final, _weights(stage))
        self.checkpoints.save(self.checkpoints.last, stage.run_state())


def _weights(stage: Stage) -> dict[str, Any]:
    return {"done": stage.done, "policy": stage.policy.state_dict()}


def _allocation(step: int, stage: ReinforcementStage) -> pd.DataFrame:
    record = stage.record
    assert record is not None
    ids = np.array([p.id for p in record.prompts], dtype=np.int64)
    p_hat = np.where(record.known, record.p_hat, np.nan)
    return pd.DataFrame({"step": step, "prompt": ids, "p_hat": p_hat, "n": record.trials})


def _line(row: Row, steps: int) -> str:
    shown = [
        f"{key} {row[key]:.4g}"
        for key in ("loss/value", "reward/mean", "groups/mixed_of_batch", "policy/entropy",
                    "response/length", "grad/norm", "time/step")
        if isinstance(row.get(key), float)
    ]  # fmt: skip
    shown += [f"{key} {value:.3f}" for key, value in row.items() if key.startswith("eval/")]
    return f"step {row['step']}/{steps}: " + ", ".join(shown)
