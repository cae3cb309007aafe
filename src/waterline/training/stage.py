"""What supervised training and reinforcement learning share as Lightning modules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from waterline.rollouts import Ranks
from waterline.runs import rng_state, set_rng_state
from waterline.training.checkpoints import load_weights
from waterline.training.non_finite import NonFinite
from waterline.training.optimizer import OptimizerSettings

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from waterline.evaluation import Subject

Row = dict[str, Any]


class Stage(pl.LightningModule):
    """A module whose clock is its own: ``done`` steps of ``steps``, each a function of its number.

    Lightning runs the loop, places the module on devices and calls the callbacks; the batches, the
    learning rate and the seeds follow from ``done``, so that a run restored from ``run_state``
    continues bit for bit.
    """

    def __init__(
        self, policy: nn.Module, optimizer: OptimizerSettings, steps: int, seed: int
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.policy = policy
        self.settings = optimizer
        self.steps = steps
        self.seed = seed
        self.done = 0
        self.row: Row = {}
        self.ranks = Ranks()

    def start_from(self, weights: str | Path) -> None:
        """Takes the policy's first weights from a checkpoint.

        Raises:
            BadInput: There is no such checkpoint, or it is one of another network.
        """
        load_weights(self.policy, weights)

    def take_step(self, step: int) -> Row:
        """Does step ``step`` (from 0) and gives its metrics."""
        raise RuntimeError(f"{type(self).__name__} defines no step.")

    def subject(self) -> Subject:
        """What an evaluation of the policy measures."""
        raise RuntimeError(f"{type(self).__name__} is not evaluated.")

    def ends(self, row: Row) -> bool:
        """Whether the run ends at this step, whose evaluation stands in ``row``."""
        return False

    def allocation(self) -> pd.DataFrame | None:
        """What the last step gave each candidate: prompt, p_hat (NaN if unknown), n; or None."""
        return None

    def skips(self) -> int | None:
        """How many steps had no signal so far, when the last one had none; else None."""
        return None

    def close(self) -> None:
        """Gives back what the stage holds besides memory; called once, however the run ended."""

    def observe_gradient(self) -> None:
        """Called when the gradient of a step is whole, before it is clipped."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        # The module has its device by now, and the scaler counts its overflows there.
        half = str(self.policy.precision) == "float16"
        self.scaler = torch.amp.GradScaler(self.device.type, growth_interval=400, enabled=half)
        return self.settings.build(self.policy.parameters())

    def train_dataloader(self) -> Iterable[Any]:
        """The numbers of the steps still to do; a step looks its prompts up itself."""
        # A loader draws from its generator each time it starts: not from the run's.
        own = torch.Generator()
        steps: Any = range(self.done, self.steps)
        return DataLoader(steps, batch_size=None, generator=own)

    def training_step(self, step: int, _: int) -> None:
        step = int(step)
        self.row = {"step": step + 1, **self.take_step(step)}
        self.done = step + 1

    def backward_loss(self, loss: Tensor) -> None:
        self.manual_backward(self.scaler.scale(loss))

    def _optimizer(self) -> torch.optim.Optimizer:
        optimizer = self.optimizers(use_pl_optimizer=False)
        assert isinstance(optimizer, torch.optim.Optimizer)
        return optimizer

    def optimize(self) -> float:
        """One optimizer step at the clock's learning rate; the norm before clipping.

        Raises:
            NonFinite: The gradient is, unless float16 scales it, where that step is left out.
        """
        optimizer = self._optimizer()
        parameters = list(self.policy.parameters())
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.ranks.sum_tensors([p.grad for p in parameters if p.grad is not None])
        for group in optimizer.param_groups:
            group["lr"] = self.settings.lr_at(self.done, self.steps)
        # The scaler makes its state with the first loss, and this step may have had none.
        self.scaler.scale(torch.zeros((), device=self.device))
        self.scaler.unscale_(optimizer)
        self.observe_gradient()
        clip = self.settings.grad_clip
        norm = torch.nn.utils.clip_grad_norm_(parameters, math.inf if clip is None else clip)
        if not (norm.isfinite() or self.scaler.is_enabled()):
            raise NonFinite(f"gradient norm is {float(norm)}")
        self.scaler.step(optimizer)
        self.scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return float(norm)

    def run_state(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        optimizer = self._optimizer()
        return {
            "done": self.done,
            "policy": self.policy.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "rng": rng_state(),
        }

    def load_run_state(self, state: dict[str, Any]) -> None:
        """Puts back what ``run_state`` gave; called once Lightning has made the optimizer."""
        optimizer = self._optimizer()
        self.done = state["done"]
        self.policy.load_state_dict(state["policy"])
        optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        set_rng_state(state["rng"])
