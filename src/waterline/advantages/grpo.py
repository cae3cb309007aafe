"""GRPO: rewards standardised within their group."""

from __future__ import annotations

import torch
from torch import Tensor

from waterline.advantages.checks import checked
from waterline.advantages.segments import Segments


def grpo(rewards: Tensor, group: Tensor, *, eps: float = 1e-6, ddof: int = 1) -> Tensor:
    """GRPO advantage (Shao et al., arXiv 2402.03300).

        A_i = (r_i − r̄) / (s + eps),   s² = Σ_j (r_j − r̄)² / (n − ddof)

    For 0/1 rewards and large n, the gradient of a prompt tends to ∇p / sqrt(p (1 − p)).

    Args:
        rewards: (R,) any finite rewards.
        group: (R,) integer ids; any order, any sizes.
        eps: added to the standard deviation.
        ddof: 1 for the unbiased standard deviation (verl, and the papers' runs), 0 for that of
            the population (rLLM).

    Returns:
        (R,). A group of equal rewards gets exactly 0, and so does a group of one (verl returns the
        bare reward there: no baseline, hence another scale than every other group).

    Raises:
        ValueError: ddof not 0 or 1, a negative eps, a reward that is not finite, shapes and ids
            that do not fit.
    """
    if ddof not in (0, 1):
        raise ValueError(f"ddof={ddof}: must be 1 (unbiased) or 0 (population).")
    if not eps >= 0:
        raise ValueError(f"eps={eps}: must be a number of at least 0.")
    rewards = checked("grpo", rewards, group)
    segments = Segments.of(group)
    centred = segments.centre(rewards)
    variance = segments.sum(centred.square()) / (segments.size - ddof).clamp(min=1)
    std = variance.sqrt()
    scale = torch.where(std > 0, 1 / (std + eps), 0.0)
    return segments.spread(scale) * centred
