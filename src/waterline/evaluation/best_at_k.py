"""Best@K with replacement, as many trainers report it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.evaluation.response_counts import broadcast_counts


def best_at_k_bootstrap(
    n: ArrayLike, c: ArrayLike, k: ArrayLike, resamples: int | None = None, seed: int = 0
) -> NDArray[np.float64]:
    """Probability that k of n responses, drawn with replacement, hold a correct one.

    1 − (1 − c/n)^k in closed form, or the mean over `resamples` bootstrap draws of size k, whose
    expectation that is (SERA, Appendix D.1.2). As an estimate of Pass@K it is biased low:
    `pass_at_k` is the unbiased one. k may exceed n.

    Args:
        n: responses per question.
        c: correct responses, 0 ≤ c ≤ n.
        k: draws, k ≥ 1. The three broadcast.
        resamples: number of bootstrap draws; None for the closed form.
        seed: of the draws.

    Raises:
        ValueError: a bad count, or fewer than one resample.
    """
    n_, c_, k_ = broadcast_counts(n, c, k)
    if resamples is not None and resamples < 1:
        raise ValueError(f"resamples is {resamples}; draw at least 1, or pass None.")
    with np.errstate(divide="ignore"):  # c = n: the logarithm is −inf and the result 1
        hit = np.asarray(-np.expm1(k_ * np.log1p(-c_ / n_)), dtype=np.float64)
    if resamples is None:
        return hit
    # Draws are independent, so that the number of draws with a hit is binomial.
    hits = np.random.default_rng(seed).binomial(resamples, hit)
    return np.asarray(hits / resamples, dtype=np.float64)
