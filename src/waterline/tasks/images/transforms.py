"""The transforms of the ImageNet experiments, with explicit randomness."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)

SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
TRIES = 10
DRAWS = 1 + 4 * TRIES
"""Uniforms that one random transform may use: one for the flip, four for each try of a crop."""

_MOST_PIXELS = 2**27


def random_crop_box(height: int, width: int, draws: Sequence[float]) -> tuple[int, int, int, int]:
    """Top, left, height and width of a random crop, distributed as in ``RandomResizedCrop``.

    The area is uniform within ``SCALE`` of the image's and the aspect ratio, width to height,
    log-uniform within ``RATIO``; of ten tries the first that fits is placed uniformly. When none
    fits, it is the central crop that is largest with a ratio within ``RATIO``.

    Args:
        height: Of the image, in pixels.
        width: Of the image, in pixels.
        draws: 4 · ``TRIES`` uniforms in [0, 1).
    """
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    for i in range(0, 4 * TRIES, 4):
        area = height * width * (SCALE[0] + draws[i] * (SCALE[1] - SCALE[0]))
        ratio = math.exp(low + draws[i + 1] * (high - low))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return int(draws[i + 2] * (height - h + 1)), int(draws[i + 3] * (width - w + 1)), h, w
    w = min(width, round(height * RATIO[1]))
    h = min(height, round(width / RATIO[0]))
    return (height - h) // 2, (width - w) // 2, h, w


@dataclass(frozen=True, slots=True)
class ImageNetTransform:
    """From an RGB image to normalised pixels (3, ``crop``, ``crop``) float32.

    Source: MaxRL, App. D, and its code; SERA, App. D.1.1 uses the same.
    """

    crop: int
    resize: int

    def train(self, image: Image.Image, draws: Sequence[float]) -> Tensor:
        """A random crop, resized, flipped horizontally with probability 1/2.

        ``draws`` are ``DRAWS`` uniforms in [0, 1); with them the result is fixed.
        """
        box = random_crop_box(image.height, image.width, draws[1:])
        size = [self.crop, self.crop]
        image = F.resized_crop(image, *box, size, InterpolationMode.BILINEAR)
        return self._normalised(F.hflip(image) if draws[0] < 0.5 else image)

    def evaluation(self, image: Image.Image) -> Tensor:
        """The central crop after the shorter side was resized to ``resize``.

        Raises ValueError for an image so narrow that it would take half a gigabyte when resized.
        """
        short, long = sorted(image.size)
        if self.resize * self.resize * long > _MOST_PIXELS * short:
            raise ValueError(f"the image is too narrow, {image.width} × {image.height} pixels")
        image = F.resize(image, self.resize, InterpolationMode.BILINEAR)
        return self._normalised(F.center_crop(image, [self.crop, self.crop]))

    @staticmethod
    def _normalised(image: Image.Image) -> Tensor:
        pixels: Tensor = F.normalize(F.to_tensor(image), MEAN, STD, inplace=True)
        return pixels
