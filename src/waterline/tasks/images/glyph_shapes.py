"""The characters that differ in shape, in every face."""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from waterline.runs.seeds import stream_key, uniforms
from waterline.tasks.images.glyph_faces import ALL_FACES, charmap, glyph_masks

TOLERANCE = 0.05
_SIDE = 32
_FRAMES = range(0x2500, 0x25A0)  # Box Drawing and Block Elements


def shape_distance(masks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """How far the masks of one face are from each other.

    d(a, b) = ‖a − b‖² / min(‖a‖², ‖b‖²), over the pixels.

    Args:
        masks: (n, s, s), none of them blank.

    Returns:
        (n, n), 0 for equal masks and 1 for a stroke that is there or not.
    """
    flat = masks.reshape(len(masks), -1).astype(np.float32) / 255
    gram = flat @ flat.T
    norm = np.diag(gram)
    distance: NDArray[np.float32] = norm[:, None] + norm - 2 * gram
    distance /= np.minimum(norm[:, None], norm)
    return distance


@cache
def distinct_characters() -> tuple[int, ...]:
    """Code points of which no two have the same outline in any face, in ascending order.

    Candidates are in the charmap of all faces, blank in none of them, and neither marks that
    combine, nor separators, control or private characters, nor pieces of frames, many of which
    differ in thickness alone. Two whose masks, centred and scaled
    to one size, are within ``TOLERANCE`` in at least one face are one shape, as is what is linked
    by such pairs; the lowest code point stands for it.
    """
    shared = set.intersection(*map(charmap, ALL_FACES))
    codes = sorted(
        c for c in shared if unicodedata.category(chr(c))[0] not in "CMZ" and c not in _FRAMES
    )
    masks = np.stack([glyph_masks(face, codes, _SIDE, _SIDE) for face in ALL_FACES])
    inked = masks.any(axis=(2, 3)).all(axis=0)
    masks = masks[:, inked]
    alike = np.zeros((masks.shape[1],) * 2, np.bool_)
    for of_face in masks:
        alike |= shape_distance(of_face) < TOLERANCE
    lowest = _lowest_linked(alike)
    kept = np.array(codes)[inked][lowest == np.arange(len(lowest))]
    return tuple(kept.tolist())


@lru_cache(maxsize=8)
def choose_characters(classes: int, seed: int) -> tuple[int, ...]:
    """The code points of the classes: the first of a permutation that is the seed's alone."""
    codes = np.array(distinct_characters())
    draws = uniforms(stream_key(seed, "glyphs/classes", 0), codes, np.zeros_like(codes), 0)[:, 0]
    return tuple(codes[np.argsort(draws, kind="stable")][:classes].tolist())


def _lowest_linked(alike: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The lowest index of each one's connected component: (n,)."""
    first, second = np.nonzero(alike)
    lowest = np.arange(len(alike))
    while True:
        before = lowest.copy()
        np.minimum.at(lowest, first, before[second])
        if np.array_equal(before, lowest):
            return lowest
