"""What every advantage asks of its input."""

from __future__ import annotations

import torch
from torch import Tensor


def checked(name: str, rewards: Tensor, group: Tensor) -> Tensor:
    """Rewards (R,) as floats of at least 32 bits, after checking them and ``group``.

    Raises ValueError for wrong shapes, group ids that are not integers, or rewards that are not
    finite; ``name`` is the algorithm that the message speaks of.
    """
    if rewards.ndim != 1 or rewards.shape != group.shape:
        raise ValueError(
            f"{name}: rewards and group must both have the shape (R,), not {tuple(rewards.shape)} "
            f"and {tuple(group.shape)}; pass one reward and one group id per response."
        )
    if group.is_floating_point() or group.is_complex() or group.dtype == torch.bool:
        raise ValueError(
            f"{name}: group must hold integer ids, not {group.dtype}; pass the prompt's id per "
            "response."
        )
    rewards = rewards.to(torch.promote_types(rewards.dtype, torch.float32))
    if not bool(rewards.isfinite().all()):
        row = int((~rewards.isfinite()).nonzero()[0])
        raise ValueError(
            f"{name}: the reward of response {row} is {float(rewards[row])}; give every response a "
            "finite reward."
        )
    return rewards


def checked_binary(name: str, rewards: Tensor, group: Tensor) -> Tensor:
    """As :func:`checked`, and raises ValueError unless every reward is exactly 0 or 1."""
    rewards = checked(name, rewards, group)
    other = (rewards != 0) & (rewards != 1)
    if bool(other.any()):
        row = int(other.nonzero()[0])
        raise ValueError(
            f"{name}: the reward of response {row} is {float(rewards[row]):g}, but {name} is "
            "defined for rewards 0 and 1 only; score each response as right or wrong, or use grpo, "
            "dr_grpo or rloo."
        )
    return rewards
