"""Reductions over groups of responses that are named by arbitrary ids."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Segments:
    """The groups of R responses: G distinct ids, neither sorted nor dense nor contiguous.

    index: (R,) int64, the group 0 … G − 1 of each response, in the order of the sorted ids.
    size: (G,) int64, the number of responses of each group; never 0.
    """

    index: Tensor
    size: Tensor

    @classmethod
    def of(cls, group: Tensor) -> Segments:
        """Segments of the ids ``group`` (R,), any integers; R = 0 gives G = 0."""
        _, index, size = torch.unique(group, return_inverse=True, return_counts=True)
        return cls(index, size)

    def sum(self, values: Tensor) -> Tensor:
        """Sum over each group: (R,) → (G,)."""
        return values.new_zeros(len(self.size)).index_add(0, self.index, values)

    def mean(self, values: Tensor) -> Tensor:
        """Mean over each group: (R,) → (G,)."""
        return self.sum(values) / self.size

    def minimum(self, values: Tensor) -> Tensor:
        """Smallest value of each group: (R,) → (G,)."""
        start = values.new_full((len(self.size),), torch.inf)
        return start.scatter_reduce(0, self.index, values, "amin")

    def spread(self, values: Tensor) -> Tensor:
        """Hand each response the value of its group: (G,) → (R,)."""
        return values[self.index]

    def centre(self, values: Tensor) -> Tensor:
        """Value minus the mean of its group: (R,) → (R,); exactly 0 in a constant group."""
        # The mean of n equal floats need not equal them: measured from the group's minimum, a
        # constant group is a row of exact zeros and no rounding error is left to be scaled up.
        above = values - self.spread(self.minimum(values))
        return above - self.spread(self.mean(above))

    def leave_one_out(self, values: Tensor) -> Tensor:
        """Value minus the mean of the others of its group: (R,) → (R,); 0 in a group of one."""
        size = self.size.to(values.dtype)  # integers would be divided in float32
        return self.spread(size / (size - 1).clamp(min=1)) * self.centre(values)
