"""Attention of one decoding step: shared prefixes uncopied, own keys per response."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_GROWTH = 32


@dataclass
class Prefix:
    """Keys and values that a block of responses shares: per layer (G, A, d)."""

    keys: list[Tensor]
    values: list[Tensor]

    @property
    def length(self) -> int:
        return self.keys[0].shape[1]


class DecodeAttention:
    """Keys and values of responses that are decoded in step; rows stand block by block.

    Rows of block b share ``prefixes[b]``. All rows have decoded the same number of tokens, so one
    counter serves them. ``keep`` lets finished rows leave.
    """

    def __init__(self, prefixes: list[Prefix], block: Tensor) -> None:
        self.prefixes = prefixes
        self.step = 0
        self.keys: dict[int, Tensor] = {}  # layer → (G, R, capacity, d)
        self.values: dict[int, Tensor] = {}
        self._set_block(block)

    def _set_block(self, block: Tensor) -> None:
        self.block = block
        sizes = torch.bincount(block, minlength=len(self.prefixes)).tolist()
        self.slices: list[tuple[Prefix, slice]] = []
        first = 0
        for prefix, size in zip(self.prefixes, sizes, strict=True):
            if size:
                self.slices.append((prefix, slice(first, first + size)))
            first += size
        self.longest = max((prefix.length for prefix, _ in self.slices), default=0)
        self.ragged = any(prefix.length < self.longest for prefix, _ in self.slices)

    def keep(self, rows: Tensor) -> None:
        """Keeps ``rows`` (ascending indices) alone."""
        self._set_block(self.block[rows])
        self.keys = {layer: k[:, rows] for layer, k in self.keys.items()}
        self.values = {layer: v[:, rows] for layer, v in self.values.items()}

    def _own(self, store: dict[int, Tensor], layer: int, new: Tensor) -> Tensor:
        """Appends (G, R, d) at the current step and gives all own entries (G, R, step + 1, d)."""
        held = store.get(layer)
        if held is None or self.step >= held.shape[2]:
            grown = new.new_zeros(*new.shape[:2], self.step + _GROWTH, new.shape[-1])
            if held is not None:
                grown[:, :, : held.shape[2]] = held
            held = store[layer] = grown
        held[:, :, self.step] = new
        return held[:, :, : self.step + 1]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """One token per row: q (1, H, R, d), k and v (1, G, R, d) → (1, H, R, d)."""
        _, heads, rows, d = q.shape
        groups = k.shape[1]
        rep = heads // groups
        own_k = self._own(self.keys, layer, k[0])
        own_v = self._own(self.values, layer, v[0])
        # (G, R, rep, d): a block's rows are one matrix against its prefix.
        query = (q[0] * scale).view(groups, rep, rows, d).transpose(1, 2).contiguous()
        scores = query.new_empty(groups, rows, rep, self.longest + self.step + 1)
        if self.ragged:
            scores[..., : self.longest] = float("-inf")
        for prefix, block in self.slices:
            shared = query[:, block].reshape(groups, -1, d) @ prefix.keys[layer].transpose(1, 2)
            scores[:, block, :, : prefix.length] = shared.view(groups, -1, rep, prefix.length)
        scores[..., self.longest :] = query @ own_k.transpose(2, 3)
        probs = scores.softmax(dim=-1)
        out = probs[..., self.longest :] @ own_v
        for prefix, block in self.slices:
            shared_p = probs[:, block, :, : prefix.length].reshape(groups, -1, prefix.length)
            out[:, block] += (shared_p @ prefix.values[layer]).view(groups, -1, rep, d)
        return out.transpose(1, 2).reshape(1, heads, rows, d)
