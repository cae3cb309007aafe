"""Checks of (n, c, k): responses, correct responses, and how many may be tried."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def broadcast_counts(
    n: ArrayLike, c: ArrayLike, k: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
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
