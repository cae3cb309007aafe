"""From rollout trees to the packed rows of an update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterline.policies import PackedRow, pack_segments
from waterline.rollouts.table import Ints, Kind, Rollouts


@dataclass(frozen=True)
class LeafRow:
    """A packed row and its leaves' view of it.

    ``leaf`` (r,) says which of the leaves handed in stand in the row. ``index`` (r, T) points into
    the row's predicted tokens and ``mask`` (r, T) marks the model tokens of each leaf's path; a
    token of an inner node is computed once and read by every leaf below it. ``token`` (n,) says
    where each predicted token stands in the table's token columns.
    """

    row: PackedRow
    leaf: Ints
    index: Tensor
    mask: Tensor
    token: Ints

    def gathered(self, column: NDArray[np.float32]) -> Tensor:
        """A token column (K,) → (r, T) its values along the leaves' paths."""
        return self.unrolled(torch.from_numpy(column[self.token]))

    def unrolled(self, values: Tensor) -> Tensor:
        """(n,) values of the row's predicted tokens → (r, T) values of the leaves' paths."""
        if values.numel() == 0:
            return values.new_zeros(self.index.shape)
        flat = self.index.to(values.device).reshape(-1)
        return values.index_select(0, flat).view(self.index.shape)


def pack_leaves(rollouts: Rollouts, leaves: Ints, max_tokens: int) -> Iterator[LeafRow]:
    """Packs the paths to ``leaves`` (R,) into rows of at most ``max_tokens`` tokens.

    A prompt stands once in a row, before its responses; one whose responses exceed the budget is
    split over rows. A single path longer than the budget gets a row of its own.
    """
    leaves = np.asarray(leaves, dtype=np.int64)
    order = np.argsort(rollouts.roots()[leaves], kind="stable")
    first = 0
    for chunk in chunk_paths(rollouts, leaves[order], max_tokens):
        yield _leaf_row(rollouts, leaves, order[first : first + len(chunk)])
        first += len(chunk)


def chunk_paths(rollouts: Rollouts, nodes: Ints, max_tokens: int) -> Iterator[list[int]]:
    """Consecutive ``nodes`` whose paths, shared nodes counted once, have at most ``max_tokens``."""
    chunk: list[int] = []
    held: set[int] = set()
    size = 0
    for node in nodes.tolist():
        path = rollouts.path(node)
        new = sum(len(rollouts.span(n)) for n in path if n not in held)
        if chunk and size + new > max_tokens:
            yield chunk
            chunk, held, size = [], set(), 0
            new = sum(len(rollouts.span(n)) for n in path)
        chunk.append(node)
        held.update(path)
        size += new
    if chunk:
        yield chunk


def pack_nodes(
    rollouts: Rollouts, nodes: list[int], predict: bool
) -> tuple[PackedRow, dict[int, int]]:
    """A row of ``nodes``, ascending and closed under parents, and each node's segment in it.

    An empty span, such as an observation without text, has no segment: it ends where its parent
    ends. With ``predict``, the tokens of model nodes are the row's predicted ones.
    """
    parent: list[int] = []
    filled: list[int] = []
    place: dict[int, int] = {}
    for node in nodes:
        above = place.get(int(rollouts.parent[node]), -1)
        place[node] = above
        if len(rollouts.span(node)):
            place[node] = len(filled)
            filled.append(node)
            parent.append(above)
    predicted = (rollouts.kind[filled] == Kind.MODEL) & predict
    return pack_segments(np.array(parent), [rollouts.span(n) for n in filled], predicted), place


def _leaf_row(rollouts: Rollouts, leaves: Ints, chosen: Ints) -> LeafRow:
    paths = [rollouts.path(int(leaf)) for leaf in leaves[chosen]]
    row, place = pack_nodes(rollouts, sorted(set().union(*paths)), predict=True)
    spans = []
    first: dict[int, int] = {}  # model node → its first predicted token in the row
    token = [np.zeros(0, dtype=np.int64)]
    n = 0
    for node in place:
        if rollouts.kind[node] == Kind.MODEL:
            first[node] = n
            n += len(rollouts.span(node))
            token.append(np.arange(rollouts.start[node], rollouts.stop[node]))
    for path in paths:
        ranges = [first[m] + np.arange(len(rollouts.span(m))) for m in path if m in first]
        spans.append(np.concatenate([*ranges, np.zeros(0, dtype=np.int64)]))
    width = max(1, max(len(s) for s in spans))
    index = np.zeros((len(spans), width), dtype=np.int64)
    mask = np.zeros((len(spans), width), dtype=bool)
    for r, span in enumerate(spans):
        index[r, : len(span)] = span
        mask[r, : len(span)] = True
    return LeafRow(
        row, chosen, torch.from_numpy(index), torch.from_numpy(mask), np.concatenate(token)
    )
