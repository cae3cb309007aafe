"""What every success estimate answers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray


class SuccessEstimate(ABC):
    """Success probabilities by persistent prompt id: any int64, neither sorted nor dense.

    A subclass writes `estimate`; one that leaves out the rest learns nothing from outcomes.
    """

    source: ClassVar[str]
    """What it goes by: 'history' (outcomes of earlier epochs) or 'exact'."""

    @abstractmethod
    def estimate(
        self, ids: ArrayLike, exact: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(B,) float64 estimates of the prompts `ids`, and (B,) bool whether each has one.

        `exact` (B,) are the true probabilities under the current policy, where the task has them.
        """

    def past(self, ids: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """(B,) past responses and successes of the prompts, as far as they still count; or None."""
        return None

    def observe(  # noqa: B027
        self, ids: ArrayLike, trials: ArrayLike, successes: ArrayLike
    ) -> None:
        """Take in (B,) responses and successes; repeated ids add up."""

    def end_epoch(self) -> None:  # noqa: B027
        """Close an epoch of the training set."""

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, in plain Python types."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Go on from a `state_dict`."""


def integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """`values` as a one-dimensional int64 array."""
    array = np.asarray(values)
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise ValueError(
            f"{name} has shape {array.shape} and type {array.dtype}; pass a list of integers."
        )
    return array.astype(np.int64)
