"""Pass@K: unbiased from counts, exact from probabilities, and with replacement."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def pass_at_k(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> Floats:
    """Probability that k of n responses, drawn without replacement, hold a correct one.

    1 − C(n − c, k) / C(n, k), the unbiased estimate of 1 − (1 − p)^k from c correct among n
    responses (Chen et al., arXiv 2107.03374; SERA, Equation 48). Computed as
    1 − ∏_{i = n−c+1}^{n} (1 − k/i) in logarithms, so that nothing overflows.

    Args:
        n: responses per question.
        c: correct responses, 0 ≤ c ≤ n.
        k: draws, 1 ≤ k ≤ n. The three broadcast.

    Returns:
        float64 of the broadcast shape.

    Raises:
        ValueError: k > n, which n responses cannot estimate without bias, or a bad count.
    """
    n_, c_, k_ = _broadcast_counts(n, c, k)
    if (k_ > n_).any():
        at = int(np.argmax(k_ > n_))
        raise ValueError(
            f"k = {k_.flat[at]} is more than the n = {n_.flat[at]} responses of a question; sample "
            "more responses or use best_at_k_bootstrap."
        )
    failure = np.zeros(n_.size)  # log of the probability that all k draws are wrong
    pairs, group = np.unique(np.stack([n_.ravel(), k_.ravel()]), axis=1, return_inverse=True)
    # One table of logarithms serves all questions with the same n and k.
    order, correct = np.argsort(group.ravel(), kind="stable"), c_.ravel()
    ends = np.cumsum(np.bincount(group.ravel(), minlength=pairs.shape[1]))
    start = 0
    for (n_i, k_i), end in zip(pairs.T, ends, strict=True):
        rows = order[start:end]
        failure[rows] = _log_all_wrong(int(n_i), correct[rows], int(k_i))
        start = end
    return np.asarray(-np.expm1(failure), dtype=np.float64).reshape(n_.shape)


def exact_pass_at_k(p: ArrayLike, k: ArrayLike) -> Floats:
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


def best_at_k_bootstrap(
    n: ArrayLike, c: ArrayLike, k: ArrayLike, resamples: int | None = None, seed: int = 0
) -> Floats:
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
    n_, c_, k_ = _broadcast_counts(n, c, k)
    if resamples is not None and resamples < 1:
        raise ValueError(f"resamples is {resamples}; draw at least 1, or pass None.")
    hit = exact_pass_at_k(c_ / n_, k_)
    if resamples is None:
        return hit
    # Draws are independent, so that the number of draws with a hit is binomial.
    hits = np.random.default_rng(seed).binomial(resamples, hit)
    return np.asarray(hits / resamples, dtype=np.float64)


def _broadcast_counts(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> tuple[Ints, Ints, Ints]:
    """n, c and k as int64 arrays of one shape, with n ≥ 1, 0 ≤ c ≤ n and k ≥ 1."""
    arrays = []
    for name, values in (("n", n), ("c", c), ("k", k)):
        array = np.asarray(values)
        if not np.issubdtype(array.dtype, np.integer):
            whole = np.issubdtype(array.dtype, np.floating) and np.all(array == np.rint(array))
            if not whole:
                raise ValueError(f"{name} must hold whole numbers; pass counts of responses.")
        arrays.append(array.astype(np.int64))
    n_, c_, k_ = np.broadcast_arrays(*arrays)
    if (n_ < 1).any():
        raise ValueError("n must be at least 1; leave out questions without a response.")
    if (c_ < 0).any() or (c_ > n_).any():
        raise ValueError("c must lie between 0 and n; count each correct response once.")
    if (k_ < 1).any():
        raise ValueError("k must be at least 1.")
    return n_, c_, k_


def _log_all_wrong(n: int, c: Ints, k: int) -> Floats:
    """Return log C(n − c, k) − log C(n, k) for every c; −inf where n − c < k."""
    possible = np.minimum(c, n - k)
    # Factor j stands for the j-th correct response, i = n − j + 1.
    factors = np.log1p(-k / np.arange(n, n - int(possible.max(initial=0)), -1))
    table = np.concatenate([[0.0], np.cumsum(factors)])
    return np.where(c > n - k, -np.inf, table[possible])
