"""A mean, or a difference of means, with its bootstrap intervals: over questions, over runs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
CHUNK = 4_000_000  # draws held at once: 32 MB
# Below three seeds the runs interval covers far less than it says, so no claim rests on it.
SEEDS_FOR_A_CLAIM = 3
RESOLUTION = 1e-5  # points: success probabilities come from networks in single precision, 1e-7


class Interval(NamedTuple):
    """A percentile interval around an estimate."""

    estimate: float
    low: float
    high: float


def questions_interval(
    a: ArrayLike,
    b: ArrayLike | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """*questions*: resample the questions, keep checkpoints and responses (SERA, D.2.3).

    It speaks about these checkpoints on other questions, not about the methods that trained
    them; see `runs_interval`. The same seed draws the same questions for every method and K.

    Args:
        a: (Q,) score of each question.
        b: (Q,) scores of a second method on the same questions; the interval is then that of
            the mean paired difference a − b.
        resamples: bootstrap draws.
        seed: of the draws.
        level: covered share, the percentiles (1 ∓ level)/2.

    Raises:
        ValueError: scores that are not finite, or not of the same questions.
    """
    scores = _scores_or_differences(a, b, "Q")
    means = question_means(scores[None], resamples, np.random.default_rng(seed))
    return _percentile_interval(scores, means[:, 0], level)


def runs_interval(
    a: ArrayLike,
    b: ArrayLike | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """*runs*: resample the seeds, then the questions, paired by seed and question.

    The questions are the same for every seed, so each bootstrap draw takes S seeds and Q
    questions and averages the scores where they cross. It speaks about the methods.

    Args:
        a: (S, Q) score of each seed's run on each question, S ≥ 2.
        b: (S, Q) scores of a second method with the same seeds and questions; the interval is
            then that of the mean paired difference a − b.
        resamples, seed, level: as in `questions_interval`.

    Raises:
        ValueError: fewer than two seeds, or scores that are not finite or do not pair up.
    """
    scores = _scores_or_differences(a, b, "S, Q")
    seeds = scores.shape[0]
    if seeds < 2:
        raise ValueError("one seed cannot show how runs vary; add seeds or use questions_interval.")
    rng = np.random.default_rng(seed)
    means = question_means(scores, resamples, rng)
    drawn = rng.integers(0, seeds, size=(resamples, seeds))
    replicates = np.take_along_axis(means, drawn, axis=1).mean(axis=1)
    return _percentile_interval(scores, replicates, level)


def paired_bootstrap(
    a: ArrayLike, b: ArrayLike, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float, float]:
    """Mean of a − b and its 95% interval, resampling the questions (SERA, Appendix D.2.3).

    Args:
        a: (Q,) scores of one method.
        b: (Q,) scores of the other on the same questions, in the same order.
        resamples: bootstrap draws.
        seed: of the draws; the same seed draws the same questions for every K.

    Returns:
        (difference, low, high).

    Raises:
        ValueError: scores that are not finite, or not of the same questions.
    """
    difference, low, high = questions_interval(a, b, resamples=resamples, seed=seed)
    return difference, low, high


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with both intervals; ``runs`` is NaN for a single seed.

    ``units`` is the interval with the checkpoints fixed, over what ``unit`` names: 'questions' for
    Pass@K, 'batches' for gradients. The default is a value that was not measured.
    """

    value: float = np.nan
    units: tuple[float, float] = (np.nan, np.nan)
    runs: tuple[float, float] = (np.nan, np.nan)
    seeds: int = 0
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


def question_means(scores: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """(resamples, S) means of each row of (S, Q) scores over the same Q resampled questions."""
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; draw at least 1.")
    questions = scores.shape[1]
    rows = max(1, CHUNK // questions)
    means = np.empty((resamples, scores.shape[0]))
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = rng.integers(0, questions, size=(size, questions), dtype=np.int64)
        # How often each draw holds each question, then one product for all seeds.
        drawn += questions * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * questions)
        means[start : start + size] = times.reshape(size, questions) @ scores.T
    means /= questions
    return means


def _scores_or_differences(a: ArrayLike, b: ArrayLike | None, axes: str) -> Floats:
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


def _scores(name: str, scores: ArrayLike, axes: str) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != len(axes.split(",")) or array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}; pass non-empty scores ({axes}).")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite scores; leave those questions out of both.")
    return array


def _percentile_interval(values: Floats, replicates: Floats, level: float) -> Interval:
    """The mean of `values` and the central `level` share of the bootstrap `replicates`."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; it must lie strictly between 0 and 1, as 0.95.")
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(replicates, [tail, 100.0 - tail])
    return Interval(float(values.mean()), float(low), float(high))
