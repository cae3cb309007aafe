"""Images of a split in batches, by worker processes."""

import torch
from torch.utils.data import DataLoader, Dataset

from waterline.tasks.images.image_task import Images, ImageSplit


class FixedBatches(Dataset[Images]):
    """A split in its own order under the transform of evaluation; ``rows`` are those to load."""

    def __init__(self, split: ImageSplit, rows: list[int], batch: int) -> None:
        self.split, self.chunks = split, [rows[i : i + batch] for i in range(0, len(rows), batch)]

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, chunk: int) -> Images:
        return self.split.load(self.chunks[chunk], None)


def loader(batches: Dataset[object], items: range, workers: int) -> DataLoader[object]:
    """A loader of whole batches by worker processes, in order; 0 workers: in this process.

    What it gives does not depend on ``workers``.
    """
    # A loader draws from its generator each time it starts: not from the run's.
    own = torch.Generator()
    return DataLoader(batches, batch_size=None, sampler=items, num_workers=workers, generator=own)


def mislabelled(images: Images, classes: int) -> list[str]:
    """The images whose label is none of 0 … ``classes`` − 1, a sentence for each."""
    wrong = (images.labels < 0) | (images.labels >= classes)
    pairs = zip(images.ids[wrong].tolist(), images.labels[wrong].tolist(), strict=True)
    return [
        f"Image {image} has the label {label}, and the task {classes} classes: correct the label, "
        "or set task.classes."
        for image, label in pairs
    ]
