"""Direct maximum likelihood, where the likelihood is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from waterline.losses.class_loss import LabelSamples


@dataclass(frozen=True, kw_only=True)
class CrossEntropy:
    """L_CE = −(1/B) Σ_q log p_q over all B candidate prompts (SERA, Equation 46).

    Without a rollout: the exact objective that MaxRL and SERA estimate. For tasks whose success
    probability p_q = π(y_q|q) is known.
    """

    normalisation: ClassVar[str] = ""
    needs_likelihood: ClassVar[bool] = True
    reads_responses: ClassVar[bool] = False
    acts_without_advantage: ClassVar[bool] = True

    @staticmethod
    def weights(labels: Tensor, classes: int) -> Tensor:
        """(b, C) float64 for :func:`class_loss` with D = B: one-hot in the true labels (b,)."""
        return torch.nn.functional.one_hot(labels, classes).double()

    def over_labels(self, sampled: LabelSamples) -> tuple[Tensor, float]:
        """(b, C) weights and denominator for :func:`class_loss`; the samples are not read."""
        return self.weights(sampled.truth, sampled.classes), float(sampled.candidates)
