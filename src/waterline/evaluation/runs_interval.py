"""The interval over training runs and questions."""

import numpy as np
from numpy.typing import ArrayLike

from waterline.evaluation.interval import Interval, percentile_interval, scores_or_differences
from waterline.evaluation.resampling import question_means


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
        resamples: bootstrap draws.
        seed: of the draws.
        level: covered share, the percentiles (1 ∓ level)/2.

    Raises:
        ValueError: fewer than two seeds, or scores that are not finite or do not pair up.
    """
    scores = scores_or_differences(a, b, "S, Q")
    seeds = scores.shape[0]
    if seeds < 2:
        raise ValueError("one seed cannot show how runs vary; add seeds or use questions_interval.")
    rng = np.random.default_rng(seed)
    means = question_means(scores, resamples, rng)
    drawn = rng.integers(0, seeds, size=(resamples, seeds))
    return percentile_interval(scores, np.take_along_axis(means, drawn, axis=1).mean(axis=1), level)
