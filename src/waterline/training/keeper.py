"""Keeps a run: metrics, allocations, evaluations, checkpoints, in an order that survives kills."""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytorch_lightning as pl

from waterline.evaluation import Evaluation
from waterline.runs import RunFolder, atomic_write
from waterline.training.checkpoints import Checkpoints
from waterline.training.mirror import NoMirror, WandbMirror
from waterline.training.stage import Row, Stage

log = logging.getLogger("waterline")


class RunKeeper(pl.Callback):
    """Evaluates where due; then writes a step's row and, where due, a checkpoint.

    A checkpoint is written last and replaces the former at once, so whatever the moment of a kill,
    the run goes on from a step whose rows, allocations and counts are on the disk; rows beyond it
    are set aside and made again. Every rank evaluates, rank 0 alone writes.

    Args:
        folder: of the run, locked by this process.
        every: the stage's settings: ``checkpoint_every`` and ``log_every``, in steps.
        evaluation: how the policy is evaluated; None for never.
        due: where and when: the ``split``, and ``every`` how many steps, ``after`` so many; 0 for
            the last alone. An evaluation also keeps the policy's weights.
        into: the folder of what is evaluated.
        writes: whether this process is rank 0.
    """

    def __init__(
        self, folder: RunFolder, mirror: NoMirror | WandbMirror, every: Mapping[str, int],
        evaluation: Evaluation | None, due: Mapping[str, Any], into: Path, writes: bool,
    ) -> None:  # fmt: skip
        self.folder, self.mirror, self.writes = folder, mirror, writes
        self.checkpoints = Checkpoints(folder.checkpoints)
        self.checkpoint_every, self.log_every = every["checkpoint_every"], every["log_every"]
        self.evaluation, self.split, self.evaluate_every = evaluation, due["split"], due["every"]
        self.evaluate_after, self.into = due.get("after", 0), into
        self.allocations: list[pd.DataFrame] = []

    def on_train_start(self, trainer: pl.Trainer, stage: pl.LightningModule) -> None:
        assert isinstance(stage, Stage)
        if self.writes:
            self._open(stage.done)
        if stage.done == 0 and self._evaluates(0):
            row = {"step": 0, **self._evaluated(stage, 0)}
            if self.writes:
                self.checkpoints.save(self.checkpoints.at(0), _weights(stage))
                self._write(row)

    def on_train_batch_end(self, trainer: pl.Trainer, stage: pl.LightningModule, *_: Any) -> None:
        assert isinstance(stage, Stage)
        step, row = stage.done, dict(stage.row)
        last = step == stage.steps
        evaluates = self._evaluates(step) or (last and self.evaluation is not None)
        if evaluates:
            row |= self._evaluated(stage, step)
            # Rank 0 alone has the values.
            if stage.ranks.gather(self.writes and stage.ends(row))[0]:
                stage.steps, last, trainer.should_stop = step, True, True
        if not self.writes:
            return
        if (allocation := stage.allocation()) is not None:
            allocation.insert(0, "step", step)
            self.allocations.append(allocation)
        _warn_without_signal(step, stage.skips())
        if evaluates:
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

    def _open(self, done: int) -> None:
        """Opens the files at step ``done``; what lies beyond it will be made again."""
        self.metrics = self.folder.open_metrics()
        moved = self.metrics.truncate_after(done)
        if self.evaluation is not None:
            self.evaluation.store(self.into).truncate_after(done)
        for file in self.folder.allocation.glob("*-*.parquet"):
            if (span := re.fullmatch(r"\d+-(\d+)", file.stem)) and int(span[1]) > done:
                file.unlink()
        if done:
            log.info("continuing after step %d (%d later rows set aside)", done, moved)

    def _evaluates(self, step: int) -> bool:
        due = self.evaluate_every > 0 and step % self.evaluate_every == 0
        return self.evaluation is not None and due and step >= self.evaluate_after

    def _evaluated(self, stage: Stage, step: int) -> Row:
        assert self.evaluation is not None
        self.evaluation.measure(stage.subject(), self.split, step, self.into)
        return self.evaluation.metrics(self.into, self.split, step) if self.writes else {}

    def _write(self, row: Row) -> None:
        if self.metrics.last_step is not None and row["step"] <= self.metrics.last_step:
            return  # the evaluation before the first step, when a run is killed right after it
        self.metrics.append(row)
        self.mirror.log(row)

    def _checkpoint(self, stage: Stage) -> None:
        if self.allocations:
            rows = pd.concat(self.allocations, ignore_index=True)
            name = f"{rows['step'].iloc[0]}-{rows['step'].iloc[-1]}.parquet"
            path = self.folder.allocation / name
            atomic_write(path, lambda file: rows.to_parquet(file, index=False))
            self.allocations = []
        self.metrics.sync()
        if stage.done == stage.steps:
            self.checkpoints.save(self.checkpoints.final, _weights(stage))
        self.checkpoints.save(self.checkpoints.last, stage.run_state())


def _weights(stage: Stage) -> dict[str, Any]:
    return {"done": stage.done, "policy": stage.policy.state_dict()}


def _warn_without_signal(step: int, skipped: int | None) -> None:
    """At the first such step, the second, the fourth and so on."""
    if skipped is not None and skipped & (skipped - 1) == 0:
        log.warning(
            "step %d had no signal, for in each of its groups all responses were right or all were "
            "wrong; the optimizer was left alone (%d such steps so far): raise allocation.n0, "
            "start from a base that succeeds more often, or set training.step_on_no_signal=true",
            step, skipped,
        )  # fmt: skip


def _line(row: Row, steps: int) -> str:
    shown = [
        f"{key} {row[key]:.4g}"
        for key in ("loss/value", "reward/mean", "groups/mixed_of_batch", "policy/entropy",
                    "response/length", "grad/norm", "time/step")
        if isinstance(row.get(key), float)
    ]  # fmt: skip
    measured = [key for key in row if key.startswith("eval/")]
    shown += [f"{key} {row[key]:.3f}" for key in measured[:: 1 + len(measured) // 8]]
    return f"step {row['step']}/{steps}: " + ", ".join(shown)
