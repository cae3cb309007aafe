"""The optimizer of a run and its learning rate."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Lt
from torch import nn

from waterline.runs.checks import BadInput
from waterline.runs.settings import (
    NotNegative,
    Positive,
    Whole,
    WholeOrZero,
    check_fields,
)

Decay = Annotated[float, Ge(0), Lt(1)]  # of a running mean


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """An optimizer, a learning rate that follows the clock of sampled batches, gradient clipping.

    ``algorithm`` is 'adamw' (which reads ``betas`` and ``eps``) or 'sgd' (which reads
    ``momentum``; its weight decay is added to the gradient). ``schedule`` is 'constant' or 'cosine'
    (to 0 at step ``horizon``, by default the run's last), after ``warmup_steps`` of linear warm-up
    from 0; ``grad_clip`` is the largest L2 norm, None leaves gradients alone.
    """

    lr: Positive
    algorithm: Literal["adamw", "sgd"] = "adamw"
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    eps: Positive = 1e-8
    momentum: Decay = 0.9
    weight_decay: NotNegative = 0.01
    grad_clip: Positive | None = 1.0
    warmup_steps: WholeOrZero = 0
    schedule: Literal["constant", "cosine"] = "constant"
    horizon: Whole | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.horizon is not None and self.horizon <= self.warmup_steps:
            raise BadInput(
                f"horizon={self.horizon}: must be above warmup_steps={self.warmup_steps}, from "
                "which on the rate falls."
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
            parameters, lr=self.lr, eps=self.eps, weight_decay=self.weight_decay,
            betas=(float(self.betas[0]), float(self.betas[1])),  # torch takes no whole numbers
        )  # fmt: skip
