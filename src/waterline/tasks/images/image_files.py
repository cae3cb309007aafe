"""Labelled image files by row, and the split that decodes them."""

import warnings
from collections.abc import Sequence
from io import BytesIO
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from PIL.TiffImagePlugin import BITSPERSAMPLE, PHOTOMETRIC_INTERPRETATION, SAMPLEFORMAT

from waterline.runs import stream_key, uniforms
from waterline.tasks.images.image_task import Images, Unreadable
from waterline.tasks.images.transforms import DRAWS, ImageNetTransform

_NO_RANGE = (
    "its pixels are fractions, signed or of more than 16 bits, so that black and white are unknown"
)


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

    The format is read from the bytes, not from a name: a PNG may be called .JPEG. All but grey
    levels of more than 8 bits (see ``_eight_bits``) become RGB by Pillow's ``convert``, as in
    torchvision's ``ImageFolder``: transparency is dropped, of several pictures the first is taken,
    and neither the orientation of EXIF data nor a colour profile is applied. Damaged EXIF data
    changes nothing and gives no warning.

    Raises:
        ValueError: There are no bytes, they are not an image, or its range is not known.
        Exception: Whatever Pillow raises for a damaged, truncated or overlarge image.
    """
    if not data:
        raise ValueError("the file is empty")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(BytesIO(data)) as image:
                return _eight_bits(image).convert("RGB")
        except UnidentifiedImageError:  # its text names a memory address
            raise ValueError("the file is no image that Pillow can read") from None


def _eight_bits(image: Image.Image) -> Image.Image:
    """``image``, or its 8 highest bits where it has grey levels of 9 to 16 bits.

    Pillow's ``convert`` would clip these; colours of 16 bits it cuts itself, in the same way.

    Raises ValueError where the levels of black and white are not known: for fractions, numbers with
    a sign, more than 16 bits, and formats that do not say how many bits they use.
    """
    tags = getattr(image, "tag_v2", {})
    kinds = set(tags.get(SAMPLEFORMAT, (1,)))  # 1 is a whole number without a sign, 4 is undefined
    if image.mode == "F" or not kinds <= {1, 4}:
        raise ValueError(_NO_RANGE)
    if image.mode != "I" and not image.mode.startswith("I;16"):
        return image
    full = image.format in ("PNG", "PPM", "JPEG2000")  # these fill 16 bits, whatever they stored
    bits = 16 if full else tags.get(BITSPERSAMPLE, (0,))[0]
    if not 8 < bits <= 16:
        raise ValueError(_NO_RANGE)
    levels = np.asarray(image)
    if tags.get(PHOTOMETRIC_INTERPRETATION) == 0:  # white is zero
        levels = 2**bits - 1 - levels
    return Image.fromarray((levels >> (bits - 8)).astype(np.uint8))


def why_unreadable(error: Exception) -> str:
    """One line for an error of reading or decoding: the same in every process."""
    text = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
    kind = type(error).__name__
    if not text:
        return kind
    return text if isinstance(error, (OSError, ValueError)) else f"{kind}: {text}"
