"""What the small models that are made on the spot share: their sizes fit, their weights a seed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torch import nn

M = TypeVar("M", bound="nn.Module")


def check_heads(hidden_size: int, heads: int, kv_heads: int) -> None:
    """Raise ValueError unless the heads divide the width into even parts, and group evenly."""
    if hidden_size % heads or hidden_size // heads % 2 or heads % kv_heads:
        raise ValueError(
            f"policy.model.heads={heads} does not fit hidden_size={hidden_size} and"
            f" kv_heads={kv_heads}: make hidden_size a multiple of 2·heads, and heads of kv_heads."
        )


def fresh(make: Callable[[Any], M], config: Any, seed: int) -> M:
    """``make(config)`` in float32 on the CPU, with weights that depend on ``seed`` alone.

    Torch's random state is left as it was.
    """
    import torch

    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(seed)
        return make(config).float()
