"""The policy-gradient term of one token."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_LOG_RATIO = 20.0  # as in verl: exp(20) is far outside every trust region, yet finite


def surrogate(
    log_ratio: Tensor,
    advantage: Tensor,
    *,
    clip_low: float | None = None,
    clip_high: float | None = None,
    dual_clip: float | None = None,
) -> Tensor:
    """Token terms of the policy loss, to be minimised.

        ρ = exp(clamp(log π − log π_old, ±20))
        ℓ = −A ρ                                              no clip
        ℓ = max(−A ρ, −A clip(ρ, 1 − clip_low, 1 + clip_high))    PPO (arXiv 1707.06347)
        ℓ = min(ℓ, −A · dual_clip)   where A < 0               dual clip (arXiv 1912.09729)

    At ρ = 1 nothing is clipped and the gradient of ℓ is −A ∇log π. ℓ is homogeneous in A: a
    non-negative factor on the advantage is a factor on ℓ.

    Args:
        log_ratio: log π − log π_old in nats, any shape.
        advantage: same shape.
        clip_low: None leaves small ratios unclipped.
        clip_high: None leaves large ratios unclipped.
        dual_clip: above 1; None for off.

    Returns:
        ℓ, same shape.
    """
    ratio = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    loss = -advantage * ratio
    if clip_low is not None or clip_high is not None:
        low = None if clip_low is None else 1 - clip_low
        high = None if clip_high is None else 1 + clip_high
        loss = torch.maximum(loss, -advantage * ratio.clamp(low, high))
    if dual_clip is not None:
        loss = torch.where(advantage < 0, torch.minimum(loss, -advantage * dual_clip), loss)
    return loss
