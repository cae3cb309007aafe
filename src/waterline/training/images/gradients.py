"""Comparing gradients of the same parameters."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def cosine(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    """⟨a, b⟩ / (‖a‖ ‖b‖) over all tensors together, accumulated in float64 (SERA, Equation 47).

    NaN when either is zero.
    """
    device = a[0].device
    dot, aa, bb = (torch.zeros((), dtype=torch.float64, device=device) for _ in range(3))
    for x, y in zip(a, b, strict=True):
        x, y = x.double().flatten(), y.double().flatten()
        dot, aa, bb = dot + x @ y, aa + x @ x, bb + y @ y
    value = float(dot / (aa.sqrt() * bb.sqrt()))
    return min(1.0, max(-1.0, value)) if value == value else value
