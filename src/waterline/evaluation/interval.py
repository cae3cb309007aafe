"""A mean, or a difference of means, with its bootstrap interval."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Interval(NamedTuple):
    """A percentile interval around an estimate."""

    estimate: float
    low: float
    high: float


def scores_or_differences(a: ArrayLike, b: ArrayLike | None, axes: str) -> NDArray[np.float64]:
    """The scores `a`, or the paired differences a − b, checked: `axes` names the shape."""
    values = _scores("a", a, axes)
    if b is None:
        return values
    other = _scores("b", b, axes)
    if values.shape != other.shape:
        raise ValueError(
            f"a has shape {values.shape} and b {other.shape}; pass the scores of both methods on "
            "the same questions, in the same order."
        )
    return values - other


def percentile_interval(
    values: NDArray[np.float64], replicates: NDArray[np.float64], level: float
) -> Interval:
    """The mean of `values` and the central `level` share of the bootstrap `replicates`."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; it must lie strictly between 0 and 1, as 0.95.")
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(replicates, [tail, 100.0 - tail])
    return Interval(float(values.mean()), float(low), float(high))


def _scores(name: str, scores: ArrayLike, axes: str) -> NDArray[np.float64]:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != len(axes.split(",")) or array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}; pass non-empty scores ({axes}).")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite scores; leave those questions out of both.")
    return array
