"""A loss or gradient that is no number any more, and the batch that gave it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from waterline.training.checkpoints import Checkpoints


class NonFinite(ArithmeticError):
    """A loss or gradient is NaN or infinite; the weights are still those before it.

    ``batch`` is what the step was learning from, a dict of tensors, numbers and lists. Raised on
    all ranks at once, so that none waits for another.
    """

    def __init__(self, what: str, batch: dict[str, Any] | None = None) -> None:
        super().__init__(what)
        self.batch = batch


def save_batch(path: Path, error: NonFinite, done: int, weights: dict[str, Any]) -> Path:
    """Writes the batch and the policy's weights after ``done`` steps as a checkpoint."""
    state = {"done": done, "policy": weights, **(error.batch or {})}
    Checkpoints(path.parent).save(path, state)
    return path
