"""RLOO: rewards minus the mean of the other rewards of their group."""

from __future__ import annotations

from torch import Tensor

from waterline.advantages.checks import checked
from waterline.advantages.segments import Segments


def rloo(rewards: Tensor, group: Tensor) -> Tensor:
    """REINFORCE leave-one-out advantage (Kool et al. 2019; Ahmadian et al., arXiv 2402.14740).

        A_i = r_i − mean_{j ≠ i} r_j = n/(n − 1) · (r_i − r̄)

    On-policy, (1/n) Σ A_i ∇log π(y_i) is unbiased for ∇E[r] when n ≥ 2.

    Args:
        rewards: (R,) any finite rewards.
        group: (R,) integer ids; any order, any sizes.

    Returns:
        (R,). A group of equal rewards gets exactly 0, and so does a group of one, which has no
        others to compare with (verl returns the bare reward there).

    Raises:
        ValueError: a reward that is not finite, or shapes and ids that do not fit.
    """
    rewards = checked("rloo", rewards, group)
    return Segments.of(group).leave_one_out(rewards)
