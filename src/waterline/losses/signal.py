"""Whether a step has anything to learn from."""

from __future__ import annotations

from torch import Tensor


def has_signal(advantage: Tensor, weight: Tensor) -> bool:
    """Whether any weighted advantage differs from 0.

    advantage (R,) or (R, T); weight (R,). Without responses the answer is False. A NaN counts as a
    signal, so that it reaches the loss, where it is found, rather than being skipped in silence.
    """
    per_row = advantage != 0
    if advantage.ndim == 2:
        per_row = per_row.any(dim=1)
    return bool((per_row & (weight != 0)).any())
