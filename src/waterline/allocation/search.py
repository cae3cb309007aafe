"""Which prompts to keep: the prefix search of SERA's Algorithm 2."""

import numpy as np
from numpy.typing import NDArray

from waterline.allocation.bounded import BoundedWaterline
from waterline.allocation.fidelity import mixed_at

TOLERANCE = 1e-12  # of Equation 42


def prefix_search(
    p: NDArray[np.float64],
    budget: int,
    lower: NDArray[np.int64],
    upper: int,
    u0: float,
    paid: int = 0,
) -> tuple[NDArray[np.int64], NDArray[np.bool_], float]:
    """Counts of a batch whose retained prompts are all likely to give a mixed group.

    Prompts are ranked by decreasing U(p, upper); a binary search over the lengths of prefixes
    keeps the longest it meets in which min U(p_q, N_q) ≥ u0 − 1e-12 at the integer counts
    (Appendix C.3). When none qualifies, the shortest prefix that can absorb the budget gets it.

    Args:
        p: (B,) success estimates strictly inside (0, 1).
        budget: rollouts M of the batch; Σ lower ≤ M ≤ B·upper.
        lower: (B,) least counts of a retained prompt, each at least max(2, paid).
        upper: largest count.
        u0: observability threshold in [0, 1).
        paid: rollouts already spent on each dropped prompt: a prefix of k prompts shares
            M − paid·(B − k).

    Returns:
        (B,) counts with 0 on dropped prompts, (B,) bool retained prompts, the level c.
    """
    batch = len(p)
    score = mixed_at(p, float(upper))
    order = np.argsort(-score, kind="stable")
    ranked = p[order]
    problem = BoundedWaterline(ranked, lower[order], upper, order)

    free = budget - paid * batch
    shortest = max(1, -(-free // max(1, upper - paid)))
    eligible = int(np.count_nonzero(score >= u0))

    best = None
    first, last = 0, 2 * batch - 1  # breakpoints between which the level lies
    low, high = shortest, eligible
    while low <= high:
        k = (low + high) // 2
        counts, level, piece = problem.integers(k, free + paid * k, first, last)
        # More prompts on the same budget have a lower level, fewer a higher one.
        if mixed_at(ranked[:k], counts.astype(np.float64)).min() >= u0 - TOLERANCE:
            best = counts, level
            low, last = k + 1, piece
        else:
            high, first = k - 1, piece
    if best is None:
        best = problem.integers(shortest, free + paid * shortest, 0, 2 * batch - 1)[:2]

    counts, level = best
    result = np.zeros(batch, dtype=np.int64)
    result[order[: len(counts)]] = counts
    return result, result > 0, level  # a retained prompt has at least 2
