"""Attention over trees of segments, registered with transformers under one name.

The model's own modules compute queries, keys and values for the tokens of a packed row
(1, heads, L, d); the object passed to the model as ``tree=`` decides what they attend to.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right
from transformers import AttentionInterface

from waterline.policies.layout import Arrangement, Family

NAME = "waterline_tree"
# Arguments by which models of transformers ask for more than plain causal attention.
_BEYOND = ("sliding_window", "softcap", "s_aux", "position_bias", "indices", "block_indices")

# Probabilities of one family in one layer, beyond which none are kept.
_PROBABILITIES = 2**25


class Attends(ABC):
    """What the tokens of a forward pass attend to; ``calls`` counts the layers that asked."""

    calls: int = 0

    @abstractmethod
    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """One layer's attention: q (1, H, L, d), k (1, G, L, d), v (1, G, L, e) → (1, H, L, e)."""


def _tree_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    tree: Attends | None = None,
    **asked: Any,
) -> tuple[Tensor, None]:
    if tree is None:
        raise ValueError("waterline_tree attention: call the model through SharedPrefixLM.")
    if attention_mask is not None or any(asked.get(name) is not None for name in _BEYOND):
        raise ValueError(
            f"waterline_tree attention: {type(module).__name__} asks for a mask of its own, a "
            "sliding window, a soft cap, sinks or biases; use a model with full causal attention."
        )
    if dropout:
        raise ValueError("waterline_tree attention: set the model's attention dropout to 0.")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    tree.calls += 1
    out = tree.attend(module.layer_idx, query, key, value, scale)
    return out.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, _tree_attention)


class _Gather(torch.autograd.Function):
    """Rows ``take`` of x (N, …), where ``back`` takes each of them back to its place.

    The backward pass is a gather as well: an accumulating scatter would be slower. Rows marked by
    ``pad`` (N,), which repeat others, get no gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, take: Tensor, back: Tensor, pad: Tensor | None) -> Tensor:
        ctx.save_for_backward(back, pad)
        return x.index_select(0, take)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        back, pad = ctx.saved_tensors
        gradient = grads[0].index_select(0, back)
        if pad is not None:
            gradient.masked_fill_(pad[:, None, None], 0)
        return gradient, None, None, None


def attend_family(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    family: Family,
    prefix_k: Sequence[Tensor],
    prefix_v: Sequence[Tensor],
    scale: float,
) -> Tensor:
    """Attention of one family's tokens: q (n, H, d), k (n, G, d), v (n, G, e) → (n, H, e).

    One softmax over the ancestors' keys (A, G, d) and the member's own causal part; n is
    members × width. All members share the ancestors' keys uncopied, unless the probabilities would
    be many: then the library's kernel, which keeps none, gets a copy of the keys per member.
    """
    members, width = family.members, family.width
    heads, groups, rep = q.shape[1], k.shape[1], q.shape[1] // k.shape[1]
    seen = width + sum(key.shape[0] for key in prefix_k)
    if not prefix_k or len(q) * heads * seen > _PROBABILITIES:
        q, k, v = (t.view(members, width, *t.shape[1:]).transpose(1, 2) for t in (q, k, v))
        k, v = _after(prefix_k, k), _after(prefix_v, v)
        out = _causal(q, k, v, scale=scale, enable_gqa=groups != heads)
        return out.transpose(1, 2).reshape(members * width, heads, -1)
    # (G, C·T·rep, d): one matrix a group, against the shared keys and, cut by member, its own.
    query = (q * scale).view(-1, groups, rep, q.shape[2]).transpose(0, 1)
    query = query.reshape(groups, -1, q.shape[2])
    own_k = k.view(members, width, groups, -1).permute(2, 0, 3, 1)  # (G, C, d, T)
    own_v = v.view(members, width, groups, -1).permute(2, 0, 1, 3)  # (G, C, T, e)
    future = torch.ones(width, width, dtype=torch.bool, device=q.device).triu(1).unsqueeze(1)
    own = query.view(groups, members, width * rep, -1) @ own_k
    own = own.view(groups, members, width, rep, width).masked_fill(future, float("-inf"))
    shared = [query @ key.permute(1, 2, 0) for key in prefix_k]  # (G, C·T·rep, A) each
    probs = torch.cat([*shared, own.view(groups, -1, width)], dim=-1).softmax(dim=-1)
    *shared_p, own_p = probs.split([*(key.shape[0] for key in prefix_k), width], dim=-1)
    out = own_p.reshape(groups, members, width * rep, width) @ own_v
    out = out.view(groups, members * width * rep, -1)
    for p, value in zip(shared_p, prefix_v, strict=True):
        out = torch.baddbmm(out, p, value.transpose(0, 1))
    return out.view(groups, members * width, rep, -1).transpose(0, 1).reshape(-1, heads, v.shape[2])


def _causal(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """Attention whose causal mask ends at the last key, so that all of a prefix is seen."""
    width, seen = q.shape[2], k.shape[2]
    if q.is_cuda:
        mask = causal_lower_right(width, seen)
        return F.scaled_dot_product_attention(q, k, v, mask, **options)
    # The kernel of the CPU knows no such mask but a stored one; queries for the prefix cost less.
    q = F.pad(q, (0, 0, seen - width, 0))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, **options)[:, :, seen - width :]


def _after(prefix: Sequence[Tensor], own: Tensor) -> Tensor:
    """The prefix (A, G, d) before each member's own (C, G, T, d)."""
    if not prefix:
        return own
    shared = (part.transpose(0, 1).expand(len(own), -1, -1, -1) for part in prefix)
    return torch.cat([*shared, own], dim=2)


class RowAttention(Attends):
    """Attention within one packed row; keeps each layer's keys and values when asked to."""

    def __init__(self, arrangement: Arrangement, keep: bool = False) -> None:
        self.arrangement = arrangement
        self.kept: dict[int, tuple[Tensor, Tensor]] | None = {} if keep else None

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        if self.kept is not None:
            self.kept[layer] = (k[0], v[0])
        a = self.arrangement
        rows = [t[0].transpose(0, 1) for t in (q, k, v)]  # (L, heads, d)
        sizes = [f.members * f.width for f in a.families]
        own_q, own_k, own_v = (_Gather.apply(t, a.index, a.back, None).split(sizes) for t in rows)
        # The row is cut once: cutting out each prefix would cost the whole row's gradient each.
        chunks_k, chunks_v = rows[1].split(a.chunks), rows[2].split(a.chunks)
        parts = []
        for i, family in enumerate(a.families):
            prefix_k = [chunks_k[c] for c in family.prefix]
            prefix_v = [chunks_v[c] for c in family.prefix]
            own = own_q[i], own_k[i], own_v[i]
            parts.append(attend_family(*own, family, prefix_k, prefix_v, scale))
        out = _Gather.apply(torch.cat(parts), a.back, a.index, a.pad)
        return out.transpose(0, 1).unsqueeze(0)
