"""Which tokens of a packed row see which: segments that form trees, grouped into families."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Siblings up to this length share one family; longer ones share it within a factor of two.
_WIDTH = 32


@dataclass(frozen=True)
class Family:
    """Sibling segments of similar length: children of one parent, or roots.

    Their tokens are padded on the right to ``members`` × ``width``; ``prefix`` numbers the chunks
    of the row that hold their ancestors, the root's first.
    """

    members: int
    width: int
    prefix: tuple[int, ...]


@dataclass(frozen=True)
class Arrangement:
    """The row's tokens by families.

    ``index`` (N,) lists the row's tokens family by family with the padding, which ``pad`` (N,)
    marks; ``back`` (L,) says where each token of the row stands in that list. ``chunks`` are the
    lengths of the pieces that the row is cut into, so that every inner segment is a piece.
    """

    families: tuple[Family, ...]
    chunks: tuple[int, ...]
    index: torch.Tensor
    back: torch.Tensor
    pad: torch.Tensor

    def to(self, device: torch.device) -> "Arrangement":
        tensors = (t.to(device) for t in (self.index, self.back, self.pad))
        return Arrangement(self.families, self.chunks, *tensors)


class TreeLayout:
    """The segments of a packed row: a forest in topological order.

    Args:
        parent: (S,) the position of each segment's parent among the segments, −1 for a root.
        length: (S,) the tokens of each segment; a segment's tokens are contiguous in the row.

    A token sees its own segment up to itself and all tokens of its segment's ancestors, so each
    path from a root reads like one causal sequence, while a shared prefix stands in the row once.

    Raises ValueError for a parent that does not stand before its child, and an empty segment.
    """

    def __init__(self, parent: Ints, length: Ints) -> None:
        if (parent >= np.arange(len(parent))).any():
            raise ValueError("TreeLayout: a parent must stand before its children in the row.")
        if (length < 1).any():
            raise ValueError("TreeLayout: a segment has no token; leave empty segments out.")
        self.parent, self.length = parent, length
        self.start = np.cumsum(length) - length
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

    def ancestry(self, segment: int) -> list[int]:
        """Segments from the root through ``segment``."""
        segments = []
        while segment >= 0:
            segments.append(segment)
            segment = int(self.parent[segment])
        return segments[::-1]

    def path(self, segment: int) -> Ints:
        """Row indices of all tokens from the root through ``segment``, in order."""
        spans = [
            np.arange(self.start[s], self.start[s] + self.length[s]) for s in self.ancestry(segment)
        ]
        return np.concatenate(spans)

    @cached_property
    def arrangement(self) -> Arrangement:
        inner = np.unique(self.parent[self.parent >= 0])
        starts = self.start[inner]
        row = np.array([0, self.length.sum()])
        cuts = np.unique(np.concatenate([row, starts, starts + self.length[inner]]))
        chunk_of = dict(zip(inner.tolist(), np.searchsorted(cuts, starts), strict=True))
        size = np.ceil(np.log2(np.maximum(self.length, _WIDTH))).astype(np.int64)
        kinds, kind = np.unique(np.stack([self.parent, size]), axis=1, return_inverse=True)
        order = np.argsort(kind.reshape(-1), kind="stable")
        families, indices, pads = [], [], []
        for parent, members in zip(
            kinds[0].tolist(),
            np.split(order, np.cumsum(np.bincount(kind.reshape(-1)))[:-1]),
            strict=True,
        ):
            lengths, firsts = self.length[members, None], self.start[members, None]
            column = np.arange(int(lengths.max()))
            prefix = tuple(int(chunk_of[s]) for s in self.ancestry(parent))
            families.append(Family(len(members), len(column), prefix))
            indices.append((firsts + np.minimum(column, lengths - 1)).reshape(-1))
            pads.append((column >= lengths).reshape(-1))
        index, pad = np.concatenate(indices), np.concatenate(pads)
        back = np.empty(int(self.length.sum()), dtype=np.int64)
        back[index[~pad]] = np.flatnonzero(~pad)
        tensors = (torch.from_numpy(a) for a in (index, back, pad))
        return Arrangement(tuple(families), tuple(np.diff(cuts).tolist()), *tensors)
