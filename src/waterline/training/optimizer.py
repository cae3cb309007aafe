"""The optimizer of a run and its learning rate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn


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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
