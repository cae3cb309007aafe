"""Attention of one decoding step: shared prefixes uncopied, own keys per response."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from waterline.policies.tree_attention import Attends

_GROWTH = 32


@dataclass
class Prefix:
    """Keys (G, A, d) and values (G, A, e) per layer that a block of responses shares."""

    keys: list[Tensor]
    values: list[Tensor]

    @property
    def length(self) -> int:
        return self.keys[0].shape[1]


@dataclass
class Bundle:
    """Blocks of similar size whose prefixes have similar lengths, handled as one batch.

    ``rows`` (B·W,) lists the blocks' rows, each block padded to W with its last row; ``keys`` and
    ``values`` per layer (B, G, A, d), padded with zeros, which ``bias`` (B, 1, 1, A) rules out.
    """

    rows: Tensor
    keys: list[Tensor]
    values: list[Tensor]
    bias: Tensor | None


class DecodeAttention(Attends):
    """Keys and values of responses that are decoded in step; rows stand block by block.

    Rows of block b share ``prefixes[b]``. All rows have decoded the same number of tokens, so one
    counter serves them. ``keep`` lets finished rows leave.
    """

    def __init__(self, prefixes: list[Prefix], block: Tensor) -> None:
        self.prefixes = prefixes
        self.step = 0
        self.keys: dict[int, Tensor] = {}  # layer → (R, G, capacity, d)
        self.values: dict[int, Tensor] = {}
        self._set_block(block)

    def _set_block(self, block: Tensor) -> None:
        self.block = block
        sizes = torch.bincount(block, minlength=len(self.prefixes)).cpu().numpy()
        first = np.cumsum(sizes) - sizes
        self.bundles: list[Bundle] = []
        back = np.empty(len(block), dtype=np.int64)  # each row's place among all bundles' rows
        offset = 0
        for blocks in self._similar(sizes):
            column = np.arange(sizes[blocks].max())
            size = sizes[blocks, None]
            rows = first[blocks, None] + np.minimum(column, size - 1)
            real = np.flatnonzero(column < size)
            back[rows.reshape(-1)[real]] = offset + real
            offset += rows.size
            self.bundles.append(self._bundle(blocks, torch.from_numpy(rows.reshape(-1))))
        self.back = torch.from_numpy(back).to(block.device)

    def _similar(self, sizes: np.ndarray) -> Iterator[np.ndarray]:
        """Blocks that have rows, by size and prefix length within a factor of two."""
        length = np.array([prefix.length for prefix in self.prefixes])
        kind = np.stack([np.ceil(np.log2(np.maximum(n, 4))) for n in (sizes, length)])
        _, which = np.unique(kind, axis=1, return_inverse=True)
        for i in range(int(which.max(initial=-1)) + 1):
            blocks = np.flatnonzero((which.reshape(-1) == i) & (sizes > 0))
            if len(blocks):
                yield blocks

    def _bundle(self, blocks: np.ndarray, rows: Tensor) -> Bundle:
        prefixes = [self.prefixes[b] for b in blocks]
        length = torch.tensor([prefix.length for prefix in prefixes])
        longest = int(length.max())

        def stacked(parts: list[list[Tensor]]) -> list[Tensor]:
            return [
                torch.stack([F.pad(t, (0, 0, 0, longest - t.shape[1])) for t in layer])
                for layer in zip(*parts, strict=True)
            ]

        bias = None
        if int(length.min()) < longest:
            beyond = torch.arange(longest) >= length[:, None]
            bias = torch.zeros(beyond.shape).masked_fill(beyond, float("-inf"))[:, None, None]
            bias = bias.to(self.block.device)
        keys, values = stacked([p.keys for p in prefixes]), stacked([p.values for p in prefixes])
        return Bundle(rows.to(self.block.device), keys, values, bias)

    def keep(self, rows: Tensor) -> None:
        """Keeps ``rows`` (ascending indices) alone."""
        self._set_block(self.block[rows])
        self.keys = {layer: k[rows] for layer, k in self.keys.items()}
        self.values = {layer: v[rows] for layer, v in self.values.items()}

    def _own(self, store: dict[int, Tensor], layer: int, new: Tensor) -> Tensor:
        """Appends (R, G, d) at the current step and gives all own entries (R, G, step + 1, d)."""
        held = store.get(layer)
        if held is None or self.step >= held.shape[2]:
            grown = new.new_zeros(*new.shape[:2], self.step + _GROWTH, new.shape[-1])
            if held is not None:
                grown[:, :, : held.shape[2]] = held
            held = store[layer] = grown
        held[:, :, self.step] = new
        return held[:, :, : self.step + 1]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """One token per row: q (1, H, R, d), k (1, G, R, d), v (1, G, R, e) → (1, H, R, e).

        The softmax over the prefix and the one over the row's own keys are merged by their
        log-sum-exp, so that only the small results change places.
        """
        _, heads, rows, d = q.shape
        groups = k.shape[1]
        own_k = self._own(self.keys, layer, k[0].transpose(0, 1))
        own_v = self._own(self.values, layer, v[0].transpose(0, 1))
        query = (q[0].transpose(0, 1) * scale).view(rows, groups, -1, d)
        shared = [_shared(query, bundle, layer) for bundle in self.bundles]
        top, mass, out = (torch.cat(t)[self.back] for t in zip(*shared, strict=True))
        own_top, own_mass, own_out = _unnormalised(query @ own_k.transpose(2, 3), own_v)
        highest = torch.maximum(top, own_top)
        share, own_share = (top - highest).exp(), (own_top - highest).exp()
        out = (out * share + own_out * own_share) / (mass * share + own_mass * own_share)
        return out.to(v.dtype).view(rows, heads, -1).transpose(0, 1).unsqueeze(0)


def _unnormalised(scores: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Row maximum m, Σ exp(s − m) and Σ exp(s − m)·v of scores (…, n) and values (…, n, e)."""
    scores = scores.float()
    top = scores.amax(dim=-1, keepdim=True)
    weights = (scores - top).exp_()
    return top, weights.sum(dim=-1, keepdim=True), weights.to(values.dtype) @ values


def _shared(query: Tensor, bundle: Bundle, layer: int) -> tuple[Tensor, ...]:
    """The prefixes' part for the bundle's padded rows, (B·W, G, rep, ·) each."""
    keys = bundle.keys[layer]
    blocks, groups, _, d = keys.shape
    rep = query.shape[2]
    # (B, G, W·rep, d): a block's rows are one matrix against its prefix.
    queries = query[bundle.rows].view(blocks, -1, groups, rep, d).transpose(1, 2)
    scores = queries.reshape(blocks, groups, -1, d) @ keys.transpose(2, 3)
    if bundle.bias is not None:
        scores = scores + bundle.bias
    parts = _unnormalised(scores, bundle.values[layer])
    return tuple(
        t.view(blocks, groups, -1, rep, t.shape[-1])
        .transpose(1, 2)
        .reshape(-1, groups, rep, t.shape[-1])
        for t in parts
    )
