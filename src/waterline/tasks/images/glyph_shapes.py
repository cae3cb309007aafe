"""The characters that differ in shape, in every face."""

import unicodedata
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from waterline.runs.seeds import stream_key, uniforms
from waterline.tasks.images.glyph_faces import ALL_FACES, charmap, glyph_masks

TOLERANCE = 0.05
_SIDE = 32
_FRAMES = range(0x2500, 0x25A0)  # Box Drawing and Block Elements


def alike_pairs(masks: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of masks of one face that show the same shape, within ``TOLERANCE``.

    d(a, b) = ‖a − b‖² / min(‖a‖², ‖b‖²) over the pixels is 0 for equal masks and 1 for a stroke
    that is there or not. Means over 4×4 pixels never lie further apart than the pixels, so
    they rule out nearly all pairs at little cost.

    Args:
        masks: (n, s, s), none of them blank, s a multiple of 4.

    Returns:
        Two (m,) arrays of indices, the first of a pair below the second.
    """
    n, side = masks.shape[:2]
    pixels = masks.reshape(n, -1).astype(np.float64)
    blocks = masks.reshape(n, side // 4, 4, side // 4, 4).mean(axis=(2, 4)).reshape(n, -1) * 4
    most = TOLERANCE * (pixels**2).sum(axis=1)
    square = (blocks**2).sum(axis=1)
    near = square[:, None] + square - 2 * blocks @ blocks.T
    near -= np.minimum(most[:, None], most)
    first, second = np.nonzero(np.triu(near < 1, 1))  # 1 of 255² is beyond rounding
    gap = ((pixels[first] - pixels[second]) ** 2).sum(axis=1)
    same = gap < np.minimum(most[first], most[second])
    return first[same], second[same]


@cache
def distinct_characters() -> tuple[int, ...]:
    """Code points of which no two have the same outline in any face, in ascending order.

    Candidates are in the charmap of all faces and blank in none of them. Left out are marks that
    combine, separators, control and private characters, and pieces of frames, many of which
    differ in thickness alone. Two characters are one shape when their masks, centred and scaled to
    one size, are within ``TOLERANCE`` in at least one face, or when a chain of such pairs links
    them; the lowest code point stands for the shape.
    """
    shared = set.intersection(*map(charmap, ALL_FACES))
    codes = sorted(
        c for c in shared if unicodedata.category(chr(c))[0] not in "CMZ" and c not in _FRAMES
    )
    masks = np.stack([glyph_masks(face, codes, _SIDE, _SIDE) for face in ALL_FACES])
    inked = masks.any(axis=(2, 3)).all(axis=0)
    masks = masks[:, inked]
    pairs = np.concatenate([alike_pairs(of_face) for of_face in masks], axis=1)
    lowest = _lowest_linked(masks.shape[1], pairs)
    kept = np.array(codes)[inked][lowest == np.arange(len(lowest))]
    return tuple(kept.tolist())


@lru_cache(maxsize=8)
def choose_characters(classes: int, seed: int) -> tuple[int, ...]:
    """The code points of the classes: the first of a permutation that is the seed's alone."""
    codes = np.array(distinct_characters())
    draws = uniforms(stream_key(seed, "glyphs/classes", 0), codes, np.zeros_like(codes), 0)[:, 0]
    return tuple(codes[np.argsort(draws, kind="stable")][:classes].tolist())


def _lowest_linked(n: int, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lowest index that each of n is linked to by pairs (2, m) of indices: (n,)."""
    lowest = np.arange(n)
    while True:
        before = lowest.copy()
        np.minimum.at(lowest, pairs[0], before[pairs[1]])
        np.minimum.at(lowest, pairs[1], before[pairs[0]])
        if np.array_equal(before, lowest):
            return lowest
