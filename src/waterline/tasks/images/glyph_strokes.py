"""Masks of characters in three stroke thicknesses."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from waterline.tasks.images.glyph_faces import glyph_masks

MARGIN = 2  # blank pixels around an outline, of which a dilation takes one


@lru_cache(maxsize=8)
def stroke_masks(faces: tuple[str, ...], codes: tuple[int, ...], side: int) -> NDArray[np.uint8]:
    """The characters of all faces with thinner, normal and thicker strokes.

    Thinner and thicker are erosion and dilation by the 3×3 cross. A process makes them once.

    Returns:
        (3, f·n, side + 2·MARGIN, side + 2·MARGIN), all characters of the first face before those of
        the second; 255 is ink. The outline is centred, its longer side as long as ``side``.
    """
    masks = np.concatenate([glyph_masks(face, codes, side, side + 2 * MARGIN) for face in faces])
    strokes = np.stack([_cross(np.minimum, masks), masks, _cross(np.maximum, masks)])
    strokes.flags.writeable = False
    return strokes


def _cross(pick: Callable[..., NDArray[np.uint8]], masks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    result = masks.copy()
    pick(result[:, 1:], masks[:, :-1], out=result[:, 1:])
    pick(result[:, :-1], masks[:, 1:], out=result[:, :-1])
    pick(result[:, :, 1:], masks[:, :, :-1], out=result[:, :, 1:])
    pick(result[:, :, :-1], masks[:, :, 1:], out=result[:, :, :-1])
    return result
