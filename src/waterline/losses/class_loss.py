"""The loss of single-label responses by counts per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class LabelSamples:
    """What the loss of a step on labels is made of; R responses to this rank's b images.

    truth: (b,) the images' own labels. classes: C. row: (R,) image of each response.
    label: (R,) its label. weighted: (R,) w_q A_i. candidates, responses: their numbers over all
    ranks.
    """

    truth: Tensor
    classes: int
    row: Tensor
    label: Tensor
    weighted: Tensor
    candidates: int
    responses: int

    @staticmethod
    def none(classes: int) -> LabelSamples:
        """Of a step without an image."""
        empty = torch.zeros(0, dtype=torch.int64)
        return LabelSamples(empty, classes, empty, empty, empty.double(), 0, 0)


class LabelLoss(Protocol):
    """A loss of a step whose responses are one label each."""

    @property
    def acts_without_advantage(self) -> bool:
        """Whether it has a gradient where every advantage is 0."""
        ...

    def over_labels(self, sampled: LabelSamples) -> tuple[Tensor, float]:
        """(b, C) weights and the denominator of the whole step, for :func:`class_loss`."""
        ...


def label_weights(
    row: Tensor, label: Tensor, weighted: Tensor, images: int, classes: int
) -> Tensor:
    """W (b, C): the sum of weighted advantages of the responses with label a to image q.

        W_qa = Σ_{i: q_i = q, a_i = a} w_q A_i

    Args:
        row: (R,) image of each response. label: (R,) its label. weighted: (R,) w_q A_i.
        images: b. classes: C.
    """
    table = torch.zeros(images * classes, dtype=torch.float64, device=weighted.device)
    table.index_add_(0, row * classes + label, weighted.double())
    return table.view(images, classes)


def class_loss(log_probs: Tensor, weights: Tensor, denominator: float) -> Tensor:
    """The scalar −(1/D) Σ_q Σ_a W_qa log π(a|q).

    With :func:`label_weights` and D = B·N0 it is the on-policy policy loss −(1/D) Σ_i w_i A_i
    log π(a_i|q_i) of all M responses (SERA, Appendix C.4, with responses of one token), at the cost
    of one table however large M is. With W one-hot in the true label and D = B it is cross-entropy.

    Args:
        log_probs: (b, C) log π, float64, with gradient. weights: (b, C), constant.
        denominator: D of the whole step, over all ranks.

    Raises:
        ValueError: a denominator that is not above 0.
    """
    if not denominator > 0:
        raise ValueError(
            f"losses: the denominator of a step is {denominator}: give it at least one response."
        )
    return -(weights.detach() * log_probs).sum() / denominator
