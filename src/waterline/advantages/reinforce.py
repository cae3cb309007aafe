"""REINFORCE: the bare reward."""

from __future__ import annotations

from torch import Tensor

from waterline.advantages.checks import checked


def reinforce(rewards: Tensor, group: Tensor) -> Tensor:
    """REINFORCE advantage without a baseline (Williams 1992).

        A_i = r_i

    On-policy, (1/n) Σ A_i ∇log π(y_i) is unbiased for ∇E[r], for any n ≥ 1.

    Args:
        rewards: (R,) any finite rewards.
        group: (R,) integer ids; they do not change the result, for there is no group baseline.

    Returns:
        (R,). A group of equal rewards r keeps them: all right is 1 each, all wrong 0.

    Raises:
        ValueError: a reward that is not finite, or shapes and ids that do not fit.
    """
    return checked("reinforce", rewards, group).clone()
