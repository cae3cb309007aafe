"""A mean, or a difference of means, with its intervals: over questions, over runs."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
CHUNK = 4_000_000  # draws held at once: 32 MB
# Below three seeds the runs interval covers far less than it says, so no claim rests on it.
SEEDS_FOR_A_CLAIM = 3
RESOLUTION = 1e-5  # points: success probabilities come from networks in single precision, 1e-7


class Interval(NamedTuple):
    """An interval around an estimate."""

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
    a: ArrayLike, b: ArrayLike | None = None, *, level: float = 0.95, shares: bool = False
) -> Interval:
    """*runs*: other seeds and other questions, paired by seed and question.

    With the means m_s of the S seeds and m_q of the Q questions, and the variances s² of each,

        half-width² = t²(S − 1) · s²(m_s) / S  +  t²(Q − 1) · s²(m_q) / Q

    with the quantiles of Student's t at (1 + level)/2. Each variance holds that of single answers
    too, so the interval is rather too wide than too narrow. The percentiles of resampled seeds
    would be, for three of them, their range, which misses the true mean in a quarter of all cases.
    It speaks about the methods. docs/intervals.md has its simulated coverage.

    Args:
        a: (S, Q) score of each seed's run on each question, S ≥ 2. One question: the interval is
            over the seeds alone.
        b: (S, Q) scores of a second method with the same seeds and questions; the interval is
            then that of the mean paired difference a − b.
        level: covered share.
        shares: the scores are shares in [0, 1], such as Pass@K. A share near an end varies less
            than one in the middle, so with the half-width w at the mean m the ends are, as in
            Wilson's interval, the μ with (m − μ)² = w² μ(1 − μ) / m(1 − m). They lie in [0, 1].

    Raises:
        ValueError: fewer than two seeds, or scores that are not finite, do not pair up, or are not
            the shares they are called.
    """
    scores = _scores_or_differences(a, b, "S, Q")
    seeds, questions = scores.shape
    if seeds < 2:
        raise ValueError("one seed cannot show how runs vary; add seeds or use questions_interval.")
    squares = student_t(seeds - 1, level) ** 2 * scores.mean(axis=1).var(ddof=1) / seeds
    if questions > 1:
        over_questions = scores.mean(axis=0).var(ddof=1) / questions
        squares += student_t(questions - 1, level) ** 2 * over_questions
    mean, half = float(scores.mean()), math.sqrt(squares)
    if not shares:
        return Interval(mean, mean - half, mean + half)
    if scores.min() < 0.0 or scores.max() > 1.0:
        raise ValueError("shares lie in [0, 1], and these scores do not; leave shares out.")
    return Interval(mean, *_wilson(mean, half))


def _wilson(mean: float, half: float) -> tuple[float, float]:
    """The μ with (mean − μ)² = half² μ(1 − μ) / mean(1 − mean)."""
    spread = mean * (1.0 - mean)
    if half == 0.0 or spread <= 0.0:
        return mean, mean
    ratio = half**2 / spread
    middle = mean + ratio / 2.0
    reach = math.sqrt(ratio * (ratio / 4.0 + spread))
    return max(0.0, (middle - reach) / (1.0 + ratio)), min(1.0, (middle + reach) / (1.0 + ratio))


def within_interval(scores: ArrayLike, groups: ArrayLike, *, level: float = 0.95) -> Interval:
    """The mean of units that were drawn within fixed groups, such as batches at checkpoints.

    With the variance s² within G groups, pooled over them, of U units in all:

        half-width = t(U − G) · s / √U

    What differs between groups is no noise here, and does not widen it.

    Args:
        scores: (U,) score of each unit.
        groups: (U,) group of each unit.
        level: covered share.

    Raises:
        ValueError: scores that are not finite, or no group with two units.
    """
    values = _scores("scores", scores, "U")
    _, group, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    free = len(values) - len(sizes)
    if free < 1:
        raise ValueError("no group has two units, so nothing shows how they vary; measure more.")
    means = np.bincount(group, weights=values) / sizes
    variance = float(((values - means[group]) ** 2).sum()) / free
    mean, half = float(values.mean()), student_t(free, level) * math.sqrt(variance / len(values))
    return Interval(mean, mean - half, mean + half)


@lru_cache
def student_t(degrees: int, level: float = 0.95) -> float:
    """The t with P(|T| < t) = ``level`` for Student's T.

    With θ = arctan(t/√ν) that probability is a finite sum of powers of cos θ (Abramowitz and
    Stegun, 26.7.3 and 26.7.4), which rises in θ: bisection. NumPy alone has no quantile of T.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; it must lie strictly between 0 and 1, as 0.95.")
    odd = degrees % 2
    # The coefficients 1, 2/3, 2·4/(3·5), … or 1, 1/2, 1·3/(2·4), … of cos θ to the power `power`.
    steps = np.arange(2 if odd else 1, degrees - 2, 2)
    coefficients = np.cumprod(np.concatenate([[1.0], steps / (steps + 1.0)]))
    power = 2 * np.arange(len(coefficients)) + odd
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        inside = 0.0 if degrees == 1 else float((coefficients * math.cos(angle) ** power).sum())
        covered = math.sin(angle) * inside
        covered = 2 / math.pi * (angle + covered) if odd else covered
        low, high = (angle, high) if covered < level else (low, angle)
    return math.sqrt(degrees) * math.tan(low)


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


def estimate(scores: Floats, shares: bool = False) -> Estimate:
    """The mean of ``scores`` (S, Q), fractions or their paired differences, in percent or points.

    ``shares``: they are fractions, whose interval stays in [0, 100]; see :func:`runs_interval`.
    """
    units = questions_interval(scores.mean(axis=0))
    runs = runs_interval(scores, shares=shares)[1:] if len(scores) > 1 else (np.nan, np.nan)
    return Estimate(
        value=100.0 * units.estimate,
        units=(100.0 * units.low, 100.0 * units.high),
        runs=(100.0 * runs[0], 100.0 * runs[1]),
        seeds=len(scores),
    )


def estimate_of_seeds(means: Floats, limits: tuple[float, float], unit: str = "seeds") -> Estimate:
    """The mean of one value per seed (S,) with its *runs* interval, clipped to ``limits``.

    Use it where each seed has units of its own, so that the seeds' means hold all noise there is.
    """
    low, high = (np.nan, np.nan)
    if len(means) > 1:
        low, high = np.clip(runs_interval(np.asarray(means)[:, None])[1:], *limits).tolist()
    return Estimate(float(np.mean(means)), runs=(low, high), seeds=len(means), unit=unit)


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
