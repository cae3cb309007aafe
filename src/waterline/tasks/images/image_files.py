"""Labelled image files by row, and the split that decodes them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from waterline.runs import stream_key, uniforms
from waterline.tasks.images.image_decode import decode_rgb, why_unreadable
from waterline.tasks.images.image_task import Images, Unreadable
from waterline.tasks.images.transforms import DRAWS, ImageNetTransform


class ImageFiles(Protocol):
    """The bytes and labels of image files, whether in folders or in a table.

    ``labels`` is (n,) int64.
    """

    labels: NDArray[np.int64]

    def read(self, row: int) -> bytes:
        """The bytes of the file of this row, unchecked."""
        ...

    def name(self, row: int) -> str:
        """The name by which a user finds the file."""
        ...


class FileSplit:
    """A split of image files: the row in ``files`` and ``first_id`` make the id.

    Decoding happens at ``load``; what cannot be read or decoded is told there, whatever the error,
    and keeps its id.
    """

    def __init__(self, files: ImageFiles, transform: ImageNetTransform, first_id: int) -> None:
        self.files = files
        self.transform = transform
        self.ids: NDArray[np.int64] = first_id + np.arange(len(files.labels), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.ids)

    def load(self, rows: Sequence[int], key: int | None) -> Images:
        """The images of these rows, augmented as ``key`` and their ids say; None: not augmented."""
        index = np.asarray(rows, dtype=np.int64)
        ids = self.ids[index]
        draws = None if key is None else self._draws(ids, key)
        pixels, kept, unreadable = [], [], []
        for place, row in enumerate(index.tolist()):
            try:
                image = decode_rgb(self.files.read(row))
                if draws is None:
                    pixels.append(self.transform.evaluation(image))
                else:
                    pixels.append(self.transform.train(image, draws[place]))
                kept.append(place)
            except Exception as error:  # decoders raise nearly every kind for damaged files
                reason = why_unreadable(error)
                unreadable.append(Unreadable(int(ids[place]), self.files.name(row), reason))
        side = self.transform.crop
        return Images(
            torch.stack(pixels) if pixels else torch.empty(0, 3, side, side),
            ids[kept],
            self.files.labels[index[kept]],
            tuple(unreadable),
        )

    @staticmethod
    def _draws(ids: NDArray[np.int64], key: int) -> list[list[float]]:
        # A stream of its own, so that a caller may use the same key for something else.
        stream = stream_key(key, "augmentation", 0)
        draws: list[list[float]] = uniforms(
            stream, ids, np.zeros_like(ids), np.arange(DRAWS)
        ).tolist()
        return draws
