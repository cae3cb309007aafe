"""Running a stage by Lightning: resumed where it stands, on one rank or several."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.strategies import DDPStrategy
from pytorch_lightning.utilities import rank_zero_only

from waterline.rollouts.ranks import is_alone
from waterline.runs import BadInput, as_bad_input
from waterline.training.checkpoints import RESUME
from waterline.training.keeper import RunKeeper
from waterline.training.stage import Stage

log = logging.getLogger("waterline")


def fit(settings: Mapping[str, Any], stage: Stage, keeper: RunKeeper) -> None:
    """Takes the steps that are still to do; ``settings`` are those of Lightning's trainer."""
    # Its import sets this to INFO: devices, tips, and that the only epoch has ended.
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    own = ("threads", "workers")  # not Lightning's
    options = {k: v for k, v in settings.items() if k not in own}
    bar = sys.stderr.isatty() and options.pop("enable_progress_bar")
    options.pop("enable_progress_bar", None)
    alone = is_alone(settings)
    if alone:
        # It was read from the environment when Lightning was imported.
        rank_zero_only.rank = 0  # type: ignore[attr-defined]
    callbacks: list[pl.Callback] = [Resume(keeper), keeper]
    if bar:
        callbacks.append(pl.callbacks.RichProgressBar())
    with as_bad_input():  # devices and nodes that are not those of the job
        trainer = pl.Trainer(
            **options,
            strategy="auto" if alone else RanksStrategy(),
            plugins=[Alone()] if alone else None,
            max_epochs=1,
            logger=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=bar,
            callbacks=callbacks,
            use_distributed_sampler=False,
        )
    trainer.fit(stage)


class Alone(LightningEnvironment):
    """One process, whatever the environment of a surrounding job says of its own ranks."""

    creates_processes_externally = True

    def local_rank(self) -> int:
        return 0

    def node_rank(self) -> int:
        return 0

    def teardown(self) -> None:
        """Leaves the job's variables as they are."""


class Resume(pl.Callback):
    """Puts the last checkpoint's state back once Lightning has made the optimizer."""

    def __init__(self, keeper: RunKeeper) -> None:
        self.keeper = keeper

    def on_fit_start(self, trainer: pl.Trainer, stage: pl.LightningModule) -> None:
        assert isinstance(stage, Stage)
        checkpoints = self.keeper.checkpoints
        state = checkpoints.resume_state()
        if state is not None:
            engine = getattr(getattr(stage, "pieces", None), "engine", None)
            can = getattr(engine, "capabilities", None)
            if can is not None and not can.in_process:
                log.info(
                    "continued from step %d with another process of the engine: samples may differ "
                    "from those of a run that was never stopped", state["done"],
                )  # fmt: skip
            try:
                stage.load_run_state(state)
            except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError,
                    ValueError) as error:  # fmt: skip
                raise BadInput(f"{checkpoints.last} is no state of this run: {RESUME}.") from error


class RanksStrategy(DDPStrategy):
    """Lightning's DDP launch and process group; gradients are summed by the stage itself.

    A rank may have no prompt and so no backward pass, and the losses are already divided by the
    denominator of all ranks: the mean that DDP takes at every backward pass would be wrong.
    """

    def _setup_model(self, model: Any) -> Any:
        return model

    def configure_ddp(self) -> None:
        """Leaves the module unwrapped."""
