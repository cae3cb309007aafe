"""SERA's Appendix C.2 and C.3 written out plainly, with the paper's own bisection.

Independent of `waterline.allocation`: nothing is imported from it.
"""

import math

import numpy as np


def kappa(p, n):
    return -np.expm1((np.asarray(n, dtype=float) - 1.0) * np.log1p(-np.asarray(p)))


def mixed(p, n):
    p, n = np.asarray(p), np.asarray(n, dtype=float)
    return 1 - (1 - p) ** n - p**n


def bisect_level(p, budget, lower, upper):
    """Equation 35 by 100 bisections in log c; the side whose sum is below the budget."""
    h = -np.log1p(-p)
    low = math.log(((lower - 1) * h).min())
    high = math.log(((upper - 1) * h).max())
    for _ in range(100):
        middle = 0.5 * (low + high)
        if np.clip(1.0 + math.exp(middle) / h, lower, upper).sum() < budget:
            low = middle
        else:
            high = middle
    c = math.exp(low)
    return np.clip(1.0 + c / h, lower, upper), c


def allocate(p, positions, budget, n_min, n_max):
    """Appendix C.2 on the retained prompts `positions` (rows of the batch `p`)."""
    positions = sorted(positions)
    q = p[positions]
    if budget == len(q) * n_min:
        return dict.fromkeys(positions, n_min)
    if budget == len(q) * n_max:
        return dict.fromkeys(positions, n_max)
    x, c = bisect_level(q, budget, n_min, n_max)
    n = np.floor(x).astype(int)
    remainder = budget - n.sum()
    target = -math.expm1(-c)
    delta = (kappa(q, n + 1) - target) ** 2 - (kappa(q, n) - target) ** 2
    # Python's sort is stable, so equal deltas stay in batch order.
    for row in sorted(np.flatnonzero(n < n_max), key=lambda i: delta[i])[:remainder]:
        n[row] += 1
    return {position: int(count) for position, count in zip(positions, n, strict=True)}


def search(p, budget, n_min, n_max, u0):
    """Algorithm 2: (B,) counts, 0 on dropped prompts."""
    p = np.asarray(p, dtype=float)
    scores = mixed(p, n_max)
    ranking = sorted(range(len(p)), key=lambda i: -scores[i])
    k_min = math.ceil(budget / n_max)
    low, high, best = k_min, int((scores >= u0).sum()), None
    while low <= high:
        k = (low + high) // 2
        counts = allocate(p, ranking[:k], budget, n_min, n_max)
        if min(mixed(p[i], n) for i, n in counts.items()) >= u0 - 1e-12:
            best, low = counts, k + 1
        else:
            high = k - 1
    if best is None:
        best = allocate(p, ranking[:k_min], budget, n_min, n_max)
    result = np.zeros(len(p), dtype=np.int64)
    for position, count in best.items():
        result[position] = count
    return result
