"""Characters in font faces: image classification without a download."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from waterline.runs.settings import checked
from waterline.tasks.images.glyph_drawing import draw_glyphs
from waterline.tasks.images.glyph_faces import (
    DEV_FACES,
    TEST_FACES,
    TRAIN_FACES,
    faces_digest,
    stroke_masks,
)
from waterline.tasks.images.glyph_shapes import choose_characters
from waterline.tasks.images.image_task import Images, ImageSplit

MOST_CLASSES = 1000
SIZES = (8, 256)
_SPLITS = {"train": TRAIN_FACES, "dev": DEV_FACES, "test": TEST_FACES}
_STRIDE = 1 << 29  # of the ids from split to split, so that all are below 2³¹
Count = Annotated[int, Ge(0), Le(_STRIDE)]


class GlyphsTask:
    """Characters of the fonts that matplotlib ships, under random affine changes and noise.

    A class is a character. The training images are in DejaVu Sans, DejaVu Sans Bold and DejaVu
    Serif; those of dev are all in DejaVu Serif Bold, those of test in DejaVu Sans Mono, which the
    classifier never saw. The five faces share 1,619 characters that differ in shape: two whose
    outlines are the same up to translation and scale (Latin A, Greek Α, Cyrillic А) are one, and
    its lowest code point stands for it. The seed chooses ``classes`` of them.

    An image is a function of the seed and its id alone, the same bits in every batch and process.
    Image i of a split shows class i mod ``classes``, so that labels are balanced; training shows
    all classes in one face, then all in the next. Nothing is drawn before the first ``load``, which
    takes about two seconds for the masks.

    Args:
        classes: 2 to 1,000.
        train, dev, test: images of the splits. A larger split begins with the smaller one's images.
        size: pixels of the side of the square image, 8 to 256.
        seed: chooses characters and draws images.

    Raises:
        ValueError: More classes than there are, or a size or number of images out of range.
    """

    has_likelihood: ClassVar[bool] = True
    answers: ClassVar[str] = "label"

    @checked
    def __init__(
        self,
        classes: Annotated[int, Ge(2), Le(MOST_CLASSES)] = 256,
        train: Count = 20_000,
        dev: Count = 2_000,
        test: Count = 4_000,
        size: Annotated[int, Ge(SIZES[0]), Le(SIZES[1])] = 32,
        seed: Annotated[int, Ge(-(2**63)), Le(2**63)] = 0,
    ) -> None:
        counts = {"train": train, "dev": dev, "test": test}
        self.classes, self.size, self.seed = classes, size, seed
        self.splits: dict[str, ImageSplit] = {
            name: GlyphSplit(self, faces, i * _STRIDE, counts[name])
            for i, (name, faces) in enumerate(_SPLITS.items())
        }

    @property
    def fingerprint(self) -> str:
        """A digest of the font files, which another version of matplotlib could change."""
        return faces_digest()

    @property
    def characters(self) -> str:
        """The character of each class, in the order of the labels."""
        return "".join(map(chr, choose_characters(self.classes, self.seed)))


class GlyphSplit:
    """Labelled images of one split, drawn when they are loaded."""

    def __init__(self, task: GlyphsTask, faces: tuple[str, ...], first: int, count: int) -> None:
        # The numbers alone: a split that held its task would hold itself.
        self.classes, self.size, self.seed = task.classes, task.size, task.seed
        self.faces, self.first = faces, first
        self.ids = np.arange(first, first + count)
        self.labels: NDArray[np.int64] = np.arange(count) % self.classes  # (n,)

    def __len__(self) -> int:
        return len(self.ids)

    def load(self, rows: Sequence[int], key: int | None) -> Images:
        """The images of these rows; ``key`` changes nothing, an image depends on its id alone."""
        ids = self.ids[np.asarray(rows, dtype=np.int64)]
        rounds, labels = np.divmod(ids - self.first, self.classes)
        codes = choose_characters(self.classes, self.seed)
        strokes = stroke_masks(self.faces, codes, self.size)
        masks = rounds % len(self.faces) * self.classes + labels
        return Images(draw_glyphs(strokes, masks, ids, self.size, self.seed), ids, labels)
