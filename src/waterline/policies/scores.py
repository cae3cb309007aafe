"""Log-probabilities and entropies of tokens from hidden states, one chunk of logits at a time.

``torch.nn.functional.linear_cross_entropy`` chunks as well. It gives no entropy, reads the head's
weight past its module, and returns bfloat16 for a bfloat16 model, too coarse for a ratio of
probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

# Elements of the temporary tensors within a chunk.
_BLOCK = 2**22


def token_scores(
    head: Callable[[Tensor], Tensor],
    hidden: Tensor,
    which: Tensor,
    target: Tensor,
    *,
    rows: int,
    temperature: float = 1.0,
    entropy: bool = False,
    entropy_grad: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """The log softmax(head(h)/τ) at (row ``which``, token ``target``), and entropies of those rows.

    Args:
        head: hidden states (c, d) → logits (c, V) that nobody else reads, float32 or float64.
        hidden: (m, d).
        which, target: (n,) rows of ``hidden`` and token ids.
        rows: of logits at once. With more, each chunk's logits are computed anew in the backward
            pass, and a chunk needs one tensor (rows, V) beside the head's own.
        temperature: τ.
        entropy: whether entropies are wanted. entropy_grad: whether they carry a gradient.

    Returns:
        (n,) log-probabilities and (n,) entropies or None, in nats.
    """
    if len(hidden) <= rows:
        return _at_once(head(hidden), which, target, temperature, entropy, entropy_grad)

    def scores(hidden: Tensor, which: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        logits = head(hidden)
        found: tuple[Tensor, Tensor] = _InPlace.apply(
            logits, which, target, temperature, entropy, entropy_grad
        )
        return found

    order = which.argsort(stable=True)
    counts = torch.bincount(which, minlength=len(hidden)).split(rows)
    entries = order.split([int(count.sum()) for count in counts])
    logp, spread = zip(*(
        checkpoint(
            scores, chunk, which[own] - i * rows, target[own],
            use_reentrant=False, preserve_rng_state=False,
        )
        for i, (chunk, own) in enumerate(zip(hidden.split(rows), entries, strict=True))
    ), strict=True)  # fmt: skip
    found = torch.cat(logp).index_select(0, order.argsort())
    return found, torch.cat(spread).index_select(0, which) if entropy else None


def _at_once(
    logits: Tensor, which: Tensor, target: Tensor, temperature: float, entropy: bool, grad: bool
) -> tuple[Tensor, Tensor | None]:
    log_probs = (logits / temperature).log_softmax(dim=-1)
    place = which * log_probs.shape[1] + target
    logp = log_probs.reshape(-1).index_select(0, place)
    if not entropy:
        return logp, None
    with torch.set_grad_enabled(grad and torch.is_grad_enabled()):
        return logp, -(log_probs.exp() * log_probs).sum(dim=-1).index_select(0, which)


class _InPlace(torch.autograd.Function):
    """(n,) log-probabilities and (c,) entropies of logits (c, V), whose memory is used again.

    With z the logits over τ, p their softmax, H = −Σ p log p, and u the gradient of the scores:
    ∂ log p_k / ∂z_j = 1[j = k] − p_j and ∂H / ∂z_j = −p_j (log p_j + H). The logits become p, and p
    becomes the gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, which: Tensor, target: Tensor, temperature: float, entropy: bool,
        grad: bool,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        z = logits.detach()
        if hasattr(logits.grad_fn, "_saved_result"):
            z = z.clone()  # the head's last operation needs its result in its backward pass
        z.div_(temperature).sub_(z.amax(dim=-1, keepdim=True))
        place = which * z.shape[1] + target
        shifted = z.view(-1).index_select(0, place)
        mass, spread = z.new_empty(len(z)), z.new_zeros(len(z))
        for part, own, at in _blocks(z, mass, spread):
            weighted = (part.exp() * part).sum(dim=-1) if entropy else None
            part.exp_()
            torch.sum(part, dim=-1, out=own)
            part.div_(own.unsqueeze(1))
            if weighted is not None:
                at.copy_(own.log() - weighted / own)
        ctx.temperature, ctx.grad = temperature, entropy and grad
        ctx.save_for_backward(z, which, place, spread)  # a checkpoint keeps none of them
        if not ctx.grad:
            ctx.mark_non_differentiable(spread)
        return shifted - mass.log().index_select(0, which), spread

    @staticmethod
    def backward(ctx: Any, of_logp: Tensor, of_entropy: Tensor) -> tuple[Tensor | None, ...]:
        p, which, place, spread = ctx.saved_tensors
        of_logp = of_logp / ctx.temperature
        total = p.new_zeros(len(p)).index_add_(0, which, of_logp)
        of_entropy = of_entropy / ctx.temperature if ctx.grad else torch.zeros_like(spread)
        total += of_entropy * spread
        for part, own, at in _blocks(p, total, of_entropy):
            bent = torch.xlogy(part, part).mul_(at.unsqueeze(1)) if ctx.grad else None
            part.mul_(-own.unsqueeze(1))
            if bent is not None:
                part.sub_(bent)
        p.view(-1).index_add_(0, place, of_logp)
        return p, None, None, None, None, None


def _blocks(logits: Tensor, *values: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Views of consecutive rows."""
    rows = max(1, _BLOCK // logits.shape[1])
    return zip(*(tensor.split(rows) for tensor in (logits, *values)), strict=True)
