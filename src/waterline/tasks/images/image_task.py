"""What the rest of the line asks of an image classification task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An image that could not be decoded: its id, its file or row, and why."""

    id: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Images:
    """Decoded images of a batch, in the order of the rows that were requested.

    Attributes:
        pixels: (b, C, H, W) float32, normalised; b may be 0.
        ids: (b,) int64, persistent prompt ids.
        labels: (b,) int64 in [0, classes).
        unreadable: the requested images that could not be decoded.
    """

    pixels: Tensor
    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    unreadable: tuple[Unreadable, ...] = ()


class ImageSplit(Protocol):
    """Labelled images by row.

    ``ids`` (n,) int64 are persistent: the same number means the same image over epochs, restarts,
    ranks and loader workers, and no image of another split has it. Splits can be pickled, so that
    loader workers get them.
    """

    ids: NDArray[np.int64]

    def __len__(self) -> int: ...

    def load(self, rows: Sequence[int], key: int | None) -> Images:
        """The images of these rows; ``unreadable`` names those that cannot be decoded.

        ``key`` seeds the random augmentation, which depends on it and on the image's id alone;
        None gives the fixed transform of evaluation.
        """


class ImageTask(Protocol):
    """A classifier's data: each image is a prompt, a response is one class label.

    The reward of a label is 1 when it is the image's own, so that the success probability is the
    softmax probability of that label.

    Attributes:
        has_likelihood: Whether the success probability of a prompt is known exactly, without
            sampling: here it is.
        classes: the number of labels.
    """

    has_likelihood: ClassVar[bool]
    classes: int

    @property
    def splits(self) -> Mapping[str, ImageSplit]:
        """The images of ``train``, ``dev`` and ``test``."""
