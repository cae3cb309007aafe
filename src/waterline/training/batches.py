"""The batches of a run, a function of the step's number."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset

from waterline.runs import BadInput, permutation, stream_key, uniforms
from waterline.tasks.images import Images, ImageSplit

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


@dataclass(frozen=True, eq=False)
class StepImages:
    """The candidates of a step.

    ``ids`` (B,) are those of all ranks, unreadable images included, in the batch's order;
    ``images`` are this rank's.
    """

    ids: Ints
    images: Images


class StepBatches(Dataset[StepImages]):
    """Item ``step`` is the batch of that step: a fresh permutation each epoch, the last one short.

    Args:
        split: the training images. batch: candidates B per step, over all ranks.
        seed: of the run: of the order and of the augmentation.
        rank, world: whose images are loaded; row i of a batch belongs to rank i mod world.
    """

    def __init__(
        self, split: ImageSplit, batch: int, seed: int, rank: int = 0, world: int = 1
    ) -> None:
        self.split, self.batch, self.seed = split, batch, seed
        self.rank, self.world = rank, world
        self._order: tuple[int, Ints] | None = None

    @cached_property
    def per_epoch(self) -> int:
        """Steps in an epoch."""
        return -(-len(self.split) // self.batch)

    def rows(self, step: int) -> Ints:
        """The rows of the batch of ``step``, over all ranks."""
        epoch, place = divmod(step, self.per_epoch)
        if self._order is None or self._order[0] != epoch:
            self._order = epoch, permutation(self.seed, epoch, len(self.split))
        return self._order[1][place * self.batch : (place + 1) * self.batch]

    def __getitem__(self, step: int) -> StepImages:
        return self.load(step, self.rows(step))

    def further(self, step: int, taken: Collection[int], k: int) -> StepImages:
        """Up to ``k`` images more for ``step``, other than those with the ids ``taken``."""
        rows = further_rows(self.split.ids, taken, self.seed, step, k)
        return self.load(step, np.array(rows, dtype=np.int64))

    def load(self, step: int, rows: Ints) -> StepImages:
        """The images of these rows, with the augmentation of the epoch of ``step``."""
        key = stream_key(self.seed, "augmentation", step // self.per_epoch)
        own = rows[self.rank :: self.world].tolist()
        return StepImages(self.split.ids[rows], self.split.load(own, key))
