"""What every success estimate answers."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class SuccessEstimate(Protocol):
    """Success probabilities by persistent prompt id: any int64, neither sorted nor dense."""

    source: ClassVar[str]
    """Where the estimates come from: 'history' (earlier outcomes), 'exact' (known)."""

    def estimate(self, ids: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(B,) float64 estimates of the prompts `ids`, and (B,) bool whether each has one."""

    def observe(self, ids: ArrayLike, trials: ArrayLike, successes: ArrayLike) -> None:
        """Take in (B,) responses and successes; repeated ids add up."""

    def end_epoch(self) -> None:
        """Close an epoch of the training set."""

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, in plain Python types."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict`."""
