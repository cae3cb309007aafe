"""The batches of a run on images, a function of the step's number."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from torch.utils.data import Dataset

from waterline.runs import permutation, stream_key
from waterline.tasks.images import Images, ImageSplit
from waterline.training.batches import further_rows
from waterline.training.step import Ints


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
