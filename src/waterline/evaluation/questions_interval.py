"""The interval over questions, with the checkpoints fixed."""

import numpy as np
from numpy.typing import ArrayLike

from waterline.evaluation.interval import Interval, percentile_interval, scores_or_differences
from waterline.evaluation.resampling import question_means


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
    scores = scores_or_differences(a, b, "Q")
    means = question_means(scores[None], resamples, np.random.default_rng(seed))
    return percentile_interval(scores, means[:, 0], level)
