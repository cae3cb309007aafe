"""Advantages that tell tokens apart, and one that does not."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from waterline.advantages import Segments, rloo


def above_worst(rewards: Tensor, group: Tensor) -> Tensor:
    """Reward minus the least reward of the group: (R,) → (R,)."""
    groups = Segments.of(group)
    return rewards - groups.spread(groups.minimum(rewards))


class Discounted:
    """A_it = (r_i − mean of the others) · γ^(T_i − t), with t from 1: later tokens count more."""

    reads = ()

    def __init__(self, gamma: float = 0.9) -> None:
        self.gamma = gamma

    def __call__(
        self, rewards: Tensor, group: Tensor, length: Tensor, columns: Mapping[str, Tensor]
    ) -> Tensor:
        ends = length.cumsum(0).repeat_interleave(length)
        to_go = ends - 1 - torch.arange(len(ends))
        return rloo(rewards, group).repeat_interleave(length) * self.gamma**to_go


class ByEntropy:
    """A_it = (r_i − mean of the others) · H_it: tokens that the policy is unsure of count more."""

    reads = ("entropy",)

    def __call__(
        self, rewards: Tensor, group: Tensor, length: Tensor, columns: Mapping[str, Tensor]
    ) -> Tensor:
        return rloo(rewards, group).repeat_interleave(length) * columns["entropy"]
