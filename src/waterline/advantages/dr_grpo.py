"""Dr.GRPO: rewards minus the mean of their group."""

from __future__ import annotations

from torch import Tensor

from waterline.advantages.checks import checked
from waterline.advantages.segments import Segments


def dr_grpo(rewards: Tensor, group: Tensor) -> Tensor:
    """Dr.GRPO advantage (Liu et al., arXiv 2503.20783).

        A_i = r_i − r̄

    GRPO without the division by the standard deviation. On-policy, (1/n) Σ A_i ∇log π(y_i) has the
    expectation ((n − 1)/n) ∇E[r]. The paper pairs it with a constant length normaliser: Seqnorm.

    Args:
        rewards: (R,) any finite rewards.
        group: (R,) integer ids; any order, any sizes.

    Returns:
        (R,). A group of equal rewards, and a group of one, get exactly 0.

    Raises:
        ValueError: a reward that is not finite, or shapes and ids that do not fit.
    """
    rewards = checked("dr_grpo", rewards, group)
    return Segments.of(group).centre(rewards)
