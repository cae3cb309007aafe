"""Prompt ids as arrays."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """`values` as a one-dimensional int64 array."""
    array = np.asarray(values)
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise ValueError(
            f"{name} has shape {array.shape} and type {array.dtype}; pass a one-dimensional array "
            "of integers."
        )
    return array.astype(np.int64)


def rows_of(
    ids: NDArray[np.int64], known: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Row of each of `ids` in the sorted `known`, and whether it is there (else the row is 0)."""
    rows = np.searchsorted(known, ids)
    found = np.zeros(len(ids), dtype=np.bool_)
    inside = rows < len(known)
    found[inside] = known[rows[inside]] == ids[inside]
    return np.where(found, rows, 0), found
