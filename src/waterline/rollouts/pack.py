"""From rollout trees to the packed rows of an update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from waterline.policies import PackedRow, pack_segments
from waterline.rollouts.table import Ints, Kind, Rollouts


@dataclass(frozen=True)
class LeafRow:
    """A packed row and its leaves' view of it.

    ``leaf`` (r,) says which of the leaves handed in stand in the row. ``index`` (r, T) points into
    the row's predicted tokens and ``mask`` (r, T) marks the model tokens of each leaf's path; a
    token of an inner node is computed once and read by every leaf below it.
    """

    row: PackedRow
    leaf: Ints
    index: Tensor
    mask: Tensor

    def unrolled(self, values: Tensor) -> Tensor:
        """(n,) values of the row's predicted tokens → (r, T) values of the leaves' paths."""
        if values.numel() == 0:
            return values.new_zeros(self.index.shape)
        return values[self.index.to(values.device)]


def pack_leaves(rollouts: Rollouts, leaves: Ints, max_tokens: int) -> Iterator[LeafRow]:
    """Packs the paths to ``leaves`` (R,) into rows of at most ``max_tokens`` tokens.

    A prompt stands once in a row, before its responses; one whose responses exceed the budget is
    split over rows. A single path longer than the budget gets a row of its own.
    """
    roots = rollouts.roots()[leaves]
    order = np.argsort(roots, kind="stable")
    chosen: list[int] = []
    nodes: set[int] = set()
    size = 0
    for i in order.tolist():
        path = set(rollouts.path(int(leaves[i])))
        new = sum(len(rollouts.span(n)) for n in path - nodes)
        if chosen and size + new > max_tokens:
            yield _leaf_row(rollouts, leaves, np.array(chosen), nodes)
            chosen, nodes, size = [], set(), 0
            new = sum(len(rollouts.span(n)) for n in path)
        chosen.append(i)
        nodes |= path
        size += new
    if chosen:
        yield _leaf_row(rollouts, leaves, np.array(chosen), nodes)


def _leaf_row(rollouts: Rollouts, leaves: Ints, chosen: Ints, nodes: set[int]) -> LeafRow:
    # An empty span (a response of no token) has no place in a row; children join its parent.
    order = [n for n in sorted(nodes) if len(rollouts.span(n))]
    place = {n: s for s, n in enumerate(order)}

    def parent_of(node: int) -> int:
        parent = int(rollouts.parent[node])
        while parent >= 0 and parent not in place:
            parent = int(rollouts.parent[parent])
        return place.get(parent, -1)

    parent = np.array([parent_of(n) for n in order], dtype=np.int64)
    predicted = rollouts.kind[order] == Kind.MODEL
    row = pack_segments(parent, [rollouts.span(n) for n in order], predicted)
    lengths = np.where(predicted, row.layout.length, 0)
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    spans = []
    for i in chosen.tolist():
        segments = [place[n] for n in rollouts.path(int(leaves[i])) if n in place]
        ranges = [np.arange(first[s], first[s] + lengths[s]) for s in segments if predicted[s]]
        spans.append(np.concatenate([*ranges, np.zeros(0, dtype=np.int64)]))
    width = max(1, max(len(s) for s in spans))
    index = np.zeros((len(spans), width), dtype=np.int64)
    mask = np.zeros((len(spans), width), dtype=bool)
    for r, span in enumerate(spans):
        index[r, : len(span)] = span
        mask[r, : len(span)] = True
    return LeafRow(row, chosen, torch.from_numpy(index), torch.from_numpy(mask))
