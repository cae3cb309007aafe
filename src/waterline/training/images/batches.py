"""The batches of a run over images, a function of the step's number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from waterline.runs import permutation, stream_key
from waterline.tasks.images import Images, ImageSplit


@dataclass(frozen=True, eq=False)
class StepImages:
    """The candidates of a step.

    ``ids`` (B,) are those of all ranks, unreadable images included, in the batch's order;
    ``images`` are this rank's.
    """

    ids: NDArray[np.int64]
    images: Images


def mislabelled(images: Images, classes: int) -> list[str]:
    """The images whose label is none of 0 … ``classes`` − 1, in words."""
    wrong = (images.labels < 0) | (images.labels >= classes)
    pairs = zip(images.ids[wrong].tolist(), images.labels[wrong].tolist(), strict=True)
    return [
        f"Image {image} has the label {label}, and the task {classes} classes: mend the label, or "
        "set task.classes."
        for image, label in pairs
    ]


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
        self._order: tuple[int, NDArray[np.int64]] | None = None

    @cached_property
    def per_epoch(self) -> int:
        """Steps in an epoch."""
        return -(-len(self.split) // self.batch)

    def rows(self, step: int) -> NDArray[np.int64]:
        """The rows of the batch of ``step``, over all ranks."""
        epoch, place = divmod(step, self.per_epoch)
        if self._order is None or self._order[0] != epoch:
            self._order = epoch, permutation(self.seed, epoch, len(self.split))
        return self._order[1][place * self.batch : (place + 1) * self.batch]

    def __getitem__(self, step: int) -> StepImages:
        rows = self.rows(step)
        key = stream_key(self.seed, "augmentation", step // self.per_epoch)
        own = rows[self.rank :: self.world].tolist()
        return StepImages(self.split.ids[rows], self.split.load(own, key))


class FixedBatches(Dataset[Images]):
    """A split in its own order under the transform of evaluation; ``rows`` are those to load."""

    def __init__(self, split: ImageSplit, rows: list[int], batch: int) -> None:
        self.split, self.chunks = split, [rows[i : i + batch] for i in range(0, len(rows), batch)]

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, chunk: int) -> Images:
        return self.split.load(self.chunks[chunk], None)


def first_item(items: list[object]) -> object:
    """The collation of a loader whose items are whole batches already."""
    return items[0]


def loader(batches: Dataset[object], items: range, workers: int) -> DataLoader[object]:
    """A loader of whole batches by worker processes, in order; 0 workers: in this process.

    What it gives does not depend on ``workers``.
    """
    import torch

    return DataLoader(
        batches,
        batch_size=1,
        sampler=items,
        collate_fn=first_item,
        num_workers=workers,
        # A loader draws from its generator each time it starts: not from the run's.
        generator=torch.Generator(),
        pin_memory=False,
    )
