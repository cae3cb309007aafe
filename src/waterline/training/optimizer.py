"""The optimizer of a run and its learning rate."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from waterline.runs.checks import require_whole


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
        for name, known in (("algorithm", ("adamw", "sgd")), ("schedule", ("constant", "cosine"))):
            if getattr(self, name) not in known:
                choice = " or ".join(known)
                raise ValueError(f"training {name} {getattr(self, name)!r}: choose {choice}.")
        clip = 1.0 if self.grad_clip is None else self.grad_clip
        for name, value, fits, what in (
            ("lr", self.lr, lambda lr: lr > 0, "a number above 0"),
            ("weight_decay", self.weight_decay, lambda decay: decay >= 0, "at least 0"),
            ("momentum", self.momentum, lambda momentum: 0 <= momentum < 1, "in [0, 1)"),
            ("grad_clip", clip, lambda clip: clip > 0, "above 0, or null"),
        ):
            # Text too is refused here: YAML reads 1e-3 as such.
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and fits(value)):
                raise ValueError(f"optimizer.{name}={value}: must be {what}.")
        require_whole("optimizer.warmup_steps", self.warmup_steps, 0)
        if self.horizon is not None:
            require_whole("optimizer.horizon", self.horizon, 1)

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
