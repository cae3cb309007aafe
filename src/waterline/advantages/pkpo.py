"""PKPO: policy gradients of Pass@K."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from waterline.advantages.checks import checked_binary
from waterline.advantages.segments import Segments


def pkpo(
    rewards: Tensor, group: Tensor, k: int = 16, form: Literal["loo", "unbiased"] = "loo"
) -> Tensor:
    """PKPO advantage (Walder & Karkhanis, arXiv 2505.15201) for 0/1 rewards, c right of n ≥ k.

    form="loo", the one behind the rows "PKPO (T = 16)" of the papers' tables (k = T; from the code
    of MaxRL): the chance that k − 1 others are all wrong, minus its mean over the other responses,

        s_i = r_i · C(n − c, k − 1) / C(n − 1, k − 1),     A_i = s_i − mean_{j ≠ i} s_j .

    Its scale is that of (1/k) ∇pass@k, and it is slightly biased, since s_j depends on r_i:
    E[(1/n) Σ A_i ∇log π(y_i)] = (1 − p)^(k − 2) [(1 − p) + p (k − 1)/(n − 1)] ∇p.
    With n = k only groups with exactly one success carry a signal (1, and −1/(n − 1) for others).

    form="unbiased", the paper's estimator with nothing subtracted, in its full scale,

        A_i = k                                          if r_i = 1
        A_i = k · [1 − C(n − 1 − c, k − 1)/C(n − 1, k − 1)]   if r_i = 0

    so that E[(1/n) Σ A_i ∇log π(y_i)] = ∇pass@k = k (1 − p)^(k − 1) ∇p.

    Args:
        rewards: (R,) 0 or 1.
        group: (R,) integer ids; any order, any sizes.
        k: the K of Pass@K, at least 1. k = 1 gives RLOO ("loo") and REINFORCE ("unbiased").
        form: "loo" or "unbiased".

    Returns:
        (R,). All wrong: 0. All right: 0 for "loo", k for "unbiased". A group with n < k gets 0:
        no estimator of ∇pass@k exists from fewer than k samples, one for a smaller k would change
        the objective prompt by prompt, and where counts are uneven a few small groups must not
        end a run. Whoever fixes the counts has to see that n ≥ k where a signal is wanted.

    Raises:
        ValueError: k below 1, an unknown form, a reward other than 0 and 1, or shapes and ids
            that do not fit.
    """
    if k < 1 or k != int(k):
        raise ValueError(f"k={k}: must be a whole number of at least 1.")
    if form not in ("loo", "unbiased"):
        raise ValueError(f"form={form}: must be loo or unbiased.")
    rewards = checked_binary("pkpo", rewards, group)
    segments = Segments.of(group)
    n, c = segments.size, segments.sum(rewards)
    if form == "loo":
        all_others_wrong = segments.spread(_all_wrong(n - c, n - 1, k - 1))
        advantage = segments.leave_one_out(rewards * all_others_wrong)
    else:
        one_other_right = 1 - segments.spread(_all_wrong(n - 1 - c, n - 1, k - 1))
        advantage = k * torch.where(rewards == 1, 1.0, one_other_right)
    return torch.where(segments.spread(n >= k), advantage, 0.0)


def _all_wrong(wrong: Tensor, others: Tensor, draws: int) -> Tensor:
    """C(wrong, draws) / C(others, draws), elementwise: (G,), (G,) → (G,)."""
    # A product of `draws` ratios: no overflow, and one factor is exactly 0 where wrong < draws.
    step = torch.arange(draws, device=wrong.device, dtype=wrong.dtype)
    above = wrong[:, None] - step
    below = (others[:, None] - step).clamp(min=1)
    return (above / below).prod(dim=1)
