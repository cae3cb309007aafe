"""Image files as they are found, decoded to RGB."""

import warnings
from io import BytesIO

from PIL import Image, UnidentifiedImageError


def decode_rgb(data: bytes) -> Image.Image:
    """The image that ``data``, the bytes of an image file, holds, as 8-bit RGB.

    The format is read from the bytes, not from a name: a PNG may be called .JPEG. CMYK, greyscale
    and palettes, with transparency too, become RGB by Pillow's ``convert``. The orientation that
    EXIF data may ask for is not applied, as in torchvision's ``ImageFolder``; damaged EXIF data
    neither matters nor is it warned of.

    Raises:
        ValueError: There are no bytes, or they are no image.
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
