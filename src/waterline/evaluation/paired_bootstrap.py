"""The difference of two methods on the same questions."""

from numpy.typing import ArrayLike

from waterline.evaluation.questions_interval import questions_interval


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
