"""Unbiased Pass@K."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.evaluation.response_counts import broadcast_counts


def pass_at_k(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
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
    n_, c_, k_ = broadcast_counts(n, c, k)
    if (k_ > n_).any():
        at = int(np.argmax(k_ > n_))
        raise ValueError(
            f"k = {k_.flat[at]} is more than the n = {n_.flat[at]} responses of a question; sample "
            "more responses or use best_at_k_bootstrap."
        )
    failure = np.zeros(n_.size)  # log of the probability that all k draws are wrong
    pairs, group = np.unique(np.stack([n_.ravel(), k_.ravel()]), axis=1, return_inverse=True)
    order, correct = np.argsort(group.ravel(), kind="stable"), c_.ravel()
    ends = np.cumsum(np.bincount(group.ravel(), minlength=pairs.shape[1]))
    start = 0
    for (n_i, k_i), end in zip(pairs.T, ends, strict=True):
        rows = order[start:end]
        failure[rows] = _log_all_wrong(int(n_i), correct[rows], int(k_i))
        start = end
    return np.asarray(-np.expm1(failure), dtype=np.float64).reshape(n_.shape)


def _log_all_wrong(n: int, c: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Return log C(n − c, k) − log C(n, k) for every c; −inf where n − c < k."""
    possible = np.minimum(c, n - k)
    # Factor j stands for the j-th correct response, i = n − j + 1.
    factors = np.log1p(-k / np.arange(n, n - int(possible.max(initial=0)), -1))
    table = np.concatenate([[0.0], np.cumsum(factors)])
    return np.where(c > n - k, -np.inf, table[possible])
