"""Attention over trees of segments, registered with transformers under one name.

The model's own modules compute queries, keys and values for the tokens of a packed row
(1, heads, L, d); the object passed to the model as ``tree=`` decides what they attend to.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface

from waterline.policies.layout import Family

NAME = "waterline_tree"


class Attends(Protocol):
    """One layer's attention: q (1, H, L, d), k and v (1, G, L, d) → (1, H, L, d)."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor: ...


def _tree_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    tree: Attends | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    if tree is None:
        raise ValueError("waterline_tree attention: call the model through SharedPrefixLM.")
    if sliding_window is not None or softcap is not None or s_aux is not None:
        raise ValueError(
            "waterline_tree attention: sliding windows, soft caps and attention sinks are not "
            "supported; use a model with full attention."
        )
    if dropout:
        raise ValueError("waterline_tree attention: set the model's attention_dropout to 0.")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    out = tree.attend(module.layer_idx, query, key, value, scale)
    return out.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, _tree_attention)


def attend_family(q: Tensor, k: Tensor, v: Tensor, family: Family, scale: float) -> Tensor:
    """Attention of one family's tokens: (H, L, d), (G, L, d) → (n, H, d) at ``family.outside``.

    One softmax over the ancestors' keys, which all members share uncopied, and the member's own
    causal part.
    """
    heads, _, d = q.shape
    groups = k.shape[0]
    members, width = family.index.shape
    flat = family.index.reshape(-1)
    own_q = q[:, flat].view(heads, members, width, d)
    own_k = k[:, flat].view(groups, members, width, d)
    own_v = v[:, flat].view(groups, members, width, d)
    if family.prefix.numel() == 0:
        out = F.scaled_dot_product_attention(
            own_q.transpose(0, 1),
            own_k.transpose(0, 1),
            own_v.transpose(0, 1),
            is_causal=True,
            scale=scale,
            enable_gqa=groups != heads,
        ).transpose(1, 2)  # (C, T, H, d)
        return out.reshape(-1, heads, d)[family.inside]
    rep = heads // groups
    rows = rep * members * width
    # (G, C, rep, T, d): the layout that serves both the shared and the own keys as matrices.
    own_q = own_q.view(groups, rep, members, width, d).transpose(1, 2).reshape(groups, -1, d)
    own_q = own_q * scale
    prefix_k, prefix_v = k[:, family.prefix], v[:, family.prefix]
    shared = own_q @ prefix_k.transpose(1, 2)  # (G, C·rep·T, A)
    own = own_q.view(groups * members, rep, width, d).reshape(groups * members, rep * width, d) @ (
        own_k.view(groups * members, width, d).transpose(1, 2)
    )  # (G·C, rep·T, T)
    future = torch.ones(width, width, dtype=torch.bool, device=q.device).triu(1)
    own = own.view(groups * members, rep, width, width).masked_fill(future, float("-inf"))
    scores = torch.cat([shared, own.view(groups, rows, width)], dim=-1)
    probs = scores.softmax(dim=-1)
    shared_p, own_p = probs.split([family.prefix.numel(), width], dim=-1)
    out = shared_p @ prefix_v  # (G, C·rep·T, d)
    own_out = own_p.reshape(groups * members, rep * width, width) @ own_v.view(
        groups * members, width, d
    )
    out = (out + own_out.view(groups, rows, d)).view(groups, members, rep, width, d)
    return out.permute(1, 3, 0, 2, 4).reshape(-1, heads, d)[family.inside]


class RowAttention:
    """Attention within one packed row; keeps each layer's keys and values when asked to."""

    def __init__(self, families: list[Family], keep: bool = False) -> None:
        self.families = families
        self.kept: dict[int, tuple[Tensor, Tensor]] | None = {} if keep else None

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        if self.kept is not None:
            self.kept[layer] = (k[0], v[0])
        parts = [attend_family(q[0], k[0], v[0], f, scale) for f in self.families]
        order = torch.cat([f.outside for f in self.families])
        out = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=q.device))
        return torch.cat(parts)[out].transpose(0, 1).unsqueeze(0)
