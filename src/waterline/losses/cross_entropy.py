"""Direct maximum likelihood, where the likelihood is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class CrossEntropy:
    """L_CE = −(1/B) Σ_q log p_q over all B candidate prompts (SERA, Equation 46).

    Without a rollout: the exact objective that MaxRL and SERA estimate. For tasks whose success
    probability p_q = π(y_q|q) is known.
    """

    normalisation: ClassVar[str] = ""

    @staticmethod
    def weights(labels: Tensor, classes: int) -> Tensor:
        """(b, C) float64 for :func:`class_loss` with D = B: one-hot in the true labels (b,)."""
        return torch.nn.functional.one_hot(labels, classes).double()
