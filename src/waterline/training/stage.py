"""What supervised training and reinforcement learning share as Lightning modules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from waterline.policies import ImageClassifier, SharedPrefixLM
from waterline.runs import BadInput, permutation, rng_state, set_rng_state
from waterline.training.non_finite import NonFinite
from waterline.training.ranks import Ranks

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
Policy = SharedPrefixLM | ImageClassifier


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """An optimizer, a learning rate that follows the clock of sampled batches, gradient clipping.

    ``algorithm`` is 'adamw' (which reads ``betas`` and ``eps``) or 'sgd' (which reads
    ``momentum``; its weight decay is added to the gradient). ``schedule`` is 'constant' or 'cosine'
    (to 0 at step ``horizon``, by default the run's last), after ``warmup_steps`` of linear warm-up
    from 0; ``grad_clip`` is the largest L2 norm, None leaves gradients alone.
    """

    lr: float
    algorithm: str = "adamw"
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    momentum: float = 0.9
    weight_decay: float = 0.01
    grad_clip: float | None = 1.0
    warmup_steps: int = 0
    schedule: str = "constant"
    horizon: int | None = None

    def __post_init__(self) -> None:
        if self.algorithm not in ("adamw", "sgd"):
            raise ValueError(f"training optimizer {self.algorithm!r}: choose adamw or sgd.")
        if self.schedule not in ("constant", "cosine"):
            raise ValueError(f"training schedule {self.schedule!r}: choose constant or cosine.")
        if not _is_number(self.lr) or not self.lr > 0:
            raise ValueError(f"optimizer.lr={self.lr}: must be a number above 0.")
        if not _is_number(self.weight_decay) or self.weight_decay < 0:
            raise ValueError(f"optimizer.weight_decay={self.weight_decay}: must be at least 0.")
        if not _is_number(self.momentum) or not 0 <= self.momentum < 1:
            raise ValueError(f"optimizer.momentum={self.momentum}: must be in [0, 1).")
        if self.grad_clip is not None and not (_is_number(self.grad_clip) and self.grad_clip > 0):
            raise ValueError(f"optimizer.grad_clip={self.grad_clip}: must be above 0, or null.")
        for name, least in (("warmup_steps", 0), ("horizon", 1)):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= least):
                raise ValueError(
                    f"optimizer.{name}={value}: must be a whole number of at least {least}."
                )

    def lr_at(self, step: int, steps: int) -> float:
        """Learning rate of step ``step`` (from 0) of ``steps``."""
        if step < self.warmup_steps:
            return self.lr * step / self.warmup_steps
        if self.schedule == "constant":
            return self.lr
        last = steps if self.horizon is None else self.horizon
        done = min(1.0, (step - self.warmup_steps) / max(1, last - self.warmup_steps))
        return self.lr * 0.5 * (1 + math.cos(math.pi * done))

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """The optimizer over ``parameters``; its learning rate is set before each step."""
        if self.algorithm == "sgd":
            return torch.optim.SGD(
                parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay
            )
        return torch.optim.AdamW(
            parameters, lr=self.lr, betas=(self.betas[0], self.betas[1]), eps=self.eps,
            weight_decay=self.weight_decay,
        )  # fmt: skip


class Stage(pl.LightningModule):
    """A module whose clock is its own: ``done`` steps of ``steps``, each a function of its number.

    Lightning runs the loop, places the module on devices and calls the callbacks; the batches, the
    learning rate and the seeds follow from ``done``, so that a run restored from ``run_state``
    continues bit for bit.
    """

    def __init__(self, policy: Policy, optimizer: OptimizerSettings, steps: int, seed: int) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.policy = policy
        self.settings = optimizer
        self.steps = steps
        self.seed = seed
        self.done = 0
        self.row: Row = {}
        self.ranks = Ranks()
        check_steps(steps)

    def take_step(self, step: int) -> Row:
        """Does step ``step`` (from 0) and gives its metrics."""
        raise RuntimeError(f"{type(self).__name__} defines no step.")

    def allocation(self) -> pd.DataFrame | None:
        """What the last step gave each candidate: prompt, p_hat (NaN if unknown), n; or None."""
        return None

    def skips(self) -> int | None:
        """How many steps had no signal so far, when the last one had none; else None."""
        return None

    def observe_gradient(self) -> None:
        """Called when the gradient of a step is whole, before it is clipped."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        # The module has its device by now, and the scaler counts its overflows there.
        half = self.policy.precision == "float16"
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

    def optimize(self) -> float:
        """One optimizer step at the clock's learning rate; the norm before clipping.

        Raises:
            NonFinite: The gradient is, unless float16 scales it, where that step is left out.
        """
        optimizer = self.optimizers(use_pl_optimizer=False)
        assert isinstance(optimizer, torch.optim.Optimizer)
        parameters = list(self.policy.parameters())
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.ranks.sum_gradients(parameters)
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
        optimizer = self.optimizers(use_pl_optimizer=False)
        assert isinstance(optimizer, torch.optim.Optimizer)
        return {
            "done": self.done,
            "policy": self.policy.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "rng": rng_state(),
        }

    def load_run_state(self, state: dict[str, Any]) -> None:
        """Puts back what ``run_state`` gave; called once Lightning has made the optimizer."""
        optimizer = self.optimizers(use_pl_optimizer=False)
        assert isinstance(optimizer, torch.optim.Optimizer)
        self.done = state["done"]
        self.policy.load_state_dict(state["policy"])
        optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        set_rng_state(state["rng"])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_steps(steps: int) -> None:
    """Raise ValueError for a run without a step."""
    if steps < 1:
        raise ValueError(f"training has steps={steps}: give at least 1.")


def rows_at(n: int, batch: int, seed: int, step: int) -> tuple[int, list[int]]:
    """The epoch of step ``step`` and the rows of its batch: a fresh permutation each epoch.

    A last, smaller batch is dropped, so ``n`` should be a multiple of ``batch``.
    """
    per_epoch = n // batch
    if per_epoch == 0:
        raise BadInput(f"A batch of {batch} prompts needs as many in the data set, not {n}.")
    epoch, place = divmod(step, per_epoch)
    order = permutation(seed, epoch, n)
    return epoch, order[place * batch : (place + 1) * batch].tolist()
