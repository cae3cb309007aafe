"""Pass@K of prompts whose success probability is known."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def exact_pass_at_k(p: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
    """Probability that at least one of k independent responses is correct.

    1 − (1 − p)^k (SERA, Section 4.1), computed as −expm1(k · log1p(−p)), so that a tiny p keeps
    all its digits where 1 − p would round to 1.

    Args:
        p: success probabilities in [0, 1].
        k: numbers of responses, at least 1. The two broadcast.

    Returns:
        float64 of the broadcast shape.

    Raises:
        ValueError: a p outside [0, 1] or NaN, or a k below 1.
    """
    p_, k_ = np.asarray(p, dtype=np.float64), np.asarray(k)
    if not ((p_ >= 0) & (p_ <= 1)).all():
        raise ValueError("A success probability p lies outside [0, 1]: pass probabilities.")
    if not (k_ >= 1).all():
        raise ValueError("Pass@K needs a k of at least 1: pass a number of responses.")
    with np.errstate(divide="ignore"):  # log1p(−1) = −inf, and Pass@K of a sure success is 1
        return np.asarray(-np.expm1(k_ * np.log1p(-p_)), dtype=np.float64)
