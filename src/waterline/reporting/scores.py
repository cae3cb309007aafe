"""A mean with its two intervals, from scores (S, Q) of seeds and questions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from waterline.evaluation import questions_interval, runs_interval
from waterline.reporting.answers import Answers, paired

Floats = NDArray[np.float64]
SEEDS_FOR_A_CLAIM = 3
RESOLUTION = 1e-5  # points: success probabilities come from networks in single precision, 1e-7


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with both intervals; ``runs`` is NaN for a single seed.

    ``units`` is the interval with the checkpoints fixed, over what ``unit`` names: 'questions' for
    Pass@K, 'batches' for gradients.
    """

    value: float
    units: tuple[float, float]
    runs: tuple[float, float]
    seeds: int
    unit: str = "questions"

    @property
    def basis(self) -> str:
        """The interval on which a claim may rest: 'runs' from three seeds on, else ``unit``."""
        return "runs" if self.seeds >= SEEDS_FOR_A_CLAIM else self.unit

    @property
    def interval(self) -> tuple[float, float]:
        """The interval called ``basis``."""
        return self.runs if self.seeds >= SEEDS_FOR_A_CLAIM else self.units

    @property
    def excludes_zero(self) -> bool:
        """Whether ``interval`` lies on one side of zero, by no less than RESOLUTION."""
        return self.interval[0] >= RESOLUTION or self.interval[1] <= -RESOLUTION


def estimate(scores: Floats, unit: str = "questions", scale: float = 100.0) -> Estimate:
    """Return the mean of ``scores`` (S, Q), values or their paired differences, times ``scale``.

    The default gives percent of fractions.
    """
    units = questions_interval(scores.mean(axis=0))
    runs = runs_interval(scores) if len(scores) > 1 else None
    return Estimate(
        value=scale * units.estimate,
        units=(scale * units.low, scale * units.high),
        runs=(scale * runs.low, scale * runs.high) if runs else (np.nan, np.nan),
        seeds=len(scores),
        unit=unit,
    )


def difference(a: Answers, b: Answers, k: int, estimator: str, label: str) -> Estimate:
    """Return Pass@K of ``a`` minus ``b`` in points, paired by seed and question."""
    a, b = paired(a, b, label)
    return estimate(a.scores(k, estimator) - b.scores(k, estimator))
