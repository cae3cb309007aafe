"""Labelled image files by row, and the split that decodes them."""

import warnings
from collections.abc import Sequence
from io import BytesIO
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from waterline.runs import stream_key, uniforms
from waterline.tasks.images.image_task import Images, Unreadable
from waterline.tasks.images.transforms import DRAWS, ImageNetTransform


class ImageFiles(Protocol):
    """The bytes and labels of image files, whether in folders or in a table.

    ``labels`` is (n,) int64; ``fingerprint`` tells these files from others.
    """

    labels: NDArray[np.int64]

    @property
    def fingerprint(self) -> str: ...

    def read(self, row: int) -> bytes:
        """The bytes of the file of this row, unchecked."""

    def name(self, row: int) -> str:
        """The name by which a user finds the file."""


class FileSplit:
    """A split of image files; the id of an image is ``first_id`` plus its row in ``files``.

    ``load`` decodes. It reports the files that cannot be read or decoded, whatever the error; they
    keep their ids.
    """

    def __init__(self, files: ImageFiles, transform: ImageNetTransform, first_id: int) -> None:
        self.files = files
        self.transform = transform
        self.ids: NDArray[np.int64] = first_id + np.arange(len(files.labels), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.ids)

    def load(self, rows: Sequence[int], key: int | None) -> Images:
        """The images of these rows; ``key`` and their ids set the augmentation, None means none."""
        index = np.asarray(rows, dtype=np.int64)
        ids = self.ids[index]
        draws: list[list[float]] | None = None
        if key is not None:
            # A stream of its own, so that a caller may use the same key for something else.
            stream = stream_key(key, "augmentation", 0)
            draws = uniforms(stream, ids, np.zeros_like(ids), np.arange(DRAWS)).tolist()
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


def decode_rgb(data: bytes) -> Image.Image:
    """The image that ``data``, the bytes of an image file, holds, as 8-bit RGB.

    The format is read from the bytes, not from a name: a PNG may be called .JPEG. CMYK, greyscale
    and palettes, with transparency too, become RGB by Pillow's ``convert``. The orientation that
    EXIF data may ask for is not applied, as in torchvision's ``ImageFolder``; damaged EXIF data
    changes nothing and gives no warning.

    Raises:
        ValueError: There are no bytes, or they are not an image.
        Exception: Whatever Pillow raises for a damaged, truncated or overlarge image.
    """
    if not data:
        raise ValueError("the file is empty")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(BytesIO(data)) as image:
                return image.convert("RGB")
        except UnidentifiedImageError:  # its text names a memory address
            raise ValueError("the file is no image that Pillow can read") from None


def why_unreadable(error: Exception) -> str:
    """One line for an error of reading or decoding: the same in every process."""
    text = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
    kind = type(error).__name__
    if not text:
        return kind
    return text if isinstance(error, (OSError, ValueError)) else f"{kind}: {text}"
