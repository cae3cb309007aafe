"""MaxRL: the centred maximum-likelihood estimator."""

from __future__ import annotations

import torch
from torch import Tensor

from waterline.advantages.checks import checked_binary
from waterline.advantages.segments import Segments


def maxrl(rewards: Tensor, group: Tensor, *, eps: float = 0.0) -> Tensor:
    """MaxRL advantage (Tajwar et al., arXiv 2602.02710; SERA Eq. 2).

        A_i = (r_i − r̄) / r̄   if r̄ > 0,   else 0

    with r̄ the mean reward of the group of n responses. On-policy, (1/n) Σ A_i ∇log π(y_i) has the
    expectation κ(p, n) ∇log p with κ(p, n) = 1 − (1 − p)^(n − 1) (SERA Eq. 3): a truncated
    gradient of the log-likelihood of success.

    Args:
        rewards: (R,) 0 or 1.
        group: (R,) integer ids; any order, any sizes.
        eps: added to the denominator; the authors' code has 1e-6, the papers' estimator 0.

    Returns:
        (R,). All wrong, all right, or a group of one: exactly 0 (the authors' code gives r / eps to
        a group of one, whose fidelity κ(p, 1) is 0). One right of n: n − 1, and −1 for the others.

    Raises:
        ValueError: a reward other than 0 and 1, a negative eps, or shapes and ids that do not fit.
    """
    if not eps >= 0:
        raise ValueError(f"eps={eps}: must be a number of at least 0.")
    rewards = checked_binary("maxrl", rewards, group)
    segments = Segments.of(group)
    mean = segments.mean(rewards)
    scale = torch.where(mean > 0, 1 / (mean + eps), 0.0)
    return segments.spread(scale) * segments.centre(rewards)
