"""The batches of a run, a function of the step's number."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from waterline.runs import BadInput, permutation, stream_key, uniforms

Ints = NDArray[np.int64]


def rows_at(n: int, batch: int, seed: int, step: int) -> tuple[int, list[int]]:
    """The epoch of step ``step`` and the rows of its batch: a fresh permutation each epoch.

    A last, smaller batch is dropped, so ``n`` should be a multiple of ``batch``.
    """
    per_epoch = n // batch
    if per_epoch == 0:
        raise BadInput(f"A batch of {batch} prompts needs as many in the data set, not {n}.")
    epoch, place = divmod(step, per_epoch)
    order = permutation(seed, epoch, n)
    return epoch, order[place * batch : (place + 1) * batch].tolist()


def further_rows(ids: Ints, taken: Collection[int], seed: int, step: int, k: int) -> list[int]:
    """Up to ``k`` rows of the training set with these ``ids`` that step ``step`` has not taken.

    They come in a random order of the step's own. A function of the arguments alone, so that a
    resumed run draws the same; the run's clock stays that of its first batches.
    """
    key = stream_key(seed, "further", step)
    draws = uniforms(key, ids, np.zeros(len(ids), np.int64), 0)[:, 0]
    order = np.argsort(draws, kind="stable")
    return order[~np.isin(ids[order], list(taken))][:k].tolist()
