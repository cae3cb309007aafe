"""Which tokens of a packed row see which: segments that form trees, grouped into families."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Family:
    """Sibling segments: children of one parent, or the roots of a row.

    ``prefix`` (A,) indexes the ancestors' tokens that every member sees whole, ``index`` (C, T)
    the members' own tokens, padded on the right with a repeated token; ``inside`` (n,) picks the
    real tokens out of the flattened (C·T,) and ``outside`` (n,) says where they stand in the row.
    """

    prefix: torch.Tensor
    index: torch.Tensor
    inside: torch.Tensor
    outside: torch.Tensor

    def to(self, device: torch.device) -> Family:
        return Family(*(t.to(device) for t in (self.prefix, self.index, self.inside, self.outside)))


class TreeLayout:
    """The segments of a packed row: a forest in topological order.

    Args:
        parent: (S,) the position of each segment's parent among the segments, −1 for a root.
        length: (S,) the tokens of each segment; a segment's tokens are contiguous in the row.

    A token sees its own segment up to itself and all tokens of its segment's ancestors, so each
    path from a root reads like one causal sequence, while a shared prefix stands in the row once.
    """

    def __init__(self, parent: Ints, length: Ints) -> None:
        if (parent >= np.arange(len(parent))).any():
            raise ValueError("TreeLayout: a parent must stand before its children in the row.")
        if (length < 1).any():
            raise ValueError("TreeLayout: a segment has no token; leave empty segments out.")
        self.parent, self.length = parent, length
        self.start = np.concatenate([[0], np.cumsum(length)[:-1]]).astype(np.int64)
        # Tokens before each segment on its path: the position of its first token.
        self.offset = np.zeros(len(parent), dtype=np.int64)
        for s, p in enumerate(parent):
            if p >= 0:
                self.offset[s] = self.offset[p] + length[p]

    @cached_property
    def positions(self) -> Ints:
        """(L,) the position of each token on its own path."""
        within = np.arange(int(self.length.sum())) - np.repeat(self.start, self.length)
        return within + np.repeat(self.offset, self.length)

    def path(self, segment: int) -> Ints:
        """Row indices of all tokens from the root through ``segment``, in order."""
        spans = []
        while segment >= 0:
            first = self.start[segment]
            spans.append(np.arange(first, first + self.length[segment]))
            segment = int(self.parent[segment])
        return np.concatenate(spans[::-1])

    @cached_property
    def families(self) -> list[Family]:
        families = []
        for parent in np.unique(self.parent):
            members = np.flatnonzero(self.parent == parent)
            width = int(self.length[members].max())
            column = np.arange(width)
            lengths, starts = self.length[members, None], self.start[members, None]
            index = starts + np.minimum(column, lengths - 1)
            inside = np.flatnonzero(column < lengths)
            prefix = self.path(int(parent)) if parent >= 0 else np.zeros(0, dtype=np.int64)
            arrays = (prefix, index, inside, index.reshape(-1)[inside])
            families.append(Family(*(torch.from_numpy(a) for a in arrays)))
        return families
