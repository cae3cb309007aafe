"""A loss or gradient that is no number any more."""

from __future__ import annotations

from typing import Any


class NonFinite(ArithmeticError):
    """A loss or gradient is NaN or infinite; the weights are still those before it.

    ``batch`` is what the step was learning from, a dict of tensors, numbers and lists. Raised on
    all ranks at once, so that none waits for another.
    """

    def __init__(self, what: str, batch: dict[str, Any] | None = None) -> None:
        super().__init__(what)
        self.batch = batch
