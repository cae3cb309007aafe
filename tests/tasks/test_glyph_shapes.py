import unicodedata

import numpy as np
import pytest

from waterline.tasks.images.glyph_faces import ALL_FACES, charmap, glyph_masks
from waterline.tasks.images.glyph_shapes import (
    TOLERANCE,
    alike_pairs,
    choose_characters,
    distinct_characters,
)

OF_ONE_OUTLINE = [
    "AΑА",  # Latin, Greek, Cyrillic
    "oοо",
    "BΒВ",
    "cсϲ",
    "pр",
    "K\u039a\u212a",  # Latin, Greek, the Kelvin sign
    "\u03a9\u2126",  # Greek, the ohm sign
    "\u00c5\u212b",  # Latin, the ångström sign
    "µμ",  # the micro sign, Greek
    "ÐĐƉ",
    ".·⋅",  # one dot, at three heights
    "-‐",
]


def relative_gap(masks: np.ndarray) -> np.ndarray:
    """(n, n) squared distance over the lesser squared norm, ∞ on the diagonal."""
    pixels = masks.reshape(len(masks), -1).astype(np.float64)
    square = (pixels**2).sum(axis=1)
    gap = square[:, None] + square - 2 * pixels @ pixels.T
    np.fill_diagonal(gap, np.inf)
    return gap / np.minimum(square[:, None], square)


@pytest.mark.parametrize("letters", OF_ONE_OUTLINE)
def test_characters_of_one_outline_are_one_shape(letters: str) -> None:
    assert len(set(letters)) == len(letters)
    assert len(set(letters) & set(map(chr, distinct_characters()))) <= 1


@pytest.mark.parametrize("letters", ["AΑА", "oοо", "ÐĐƉ"])
def test_the_lowest_code_point_stands_for_a_shape(letters: str) -> None:
    distinct = distinct_characters()
    assert [c for c in letters if ord(c) in distinct] == [letters[0]]


@pytest.mark.parametrize(("classes", "seed"), [(256, 0), (256, 1), (300, 7), (1000, 0), (1000, 5)])
def test_no_two_classes_share_an_outline_in_any_face(classes: int, seed: int) -> None:
    codes = choose_characters(classes, seed)
    assert len(set(codes)) == classes
    for face in ALL_FACES:
        # at another resolution than that at which they were told apart
        masks = glyph_masks(face, codes, 41, 43)
        assert masks.any(axis=(1, 2)).all()
        assert relative_gap(masks).min() > 0.7 * TOLERANCE


def test_there_are_enough_and_every_face_has_them() -> None:
    codes = distinct_characters()
    assert list(codes) == sorted(set(codes))
    assert len(codes) == 1619  # as the task's docstring says
    assert all(charmap(face).issuperset(codes) for face in ALL_FACES)
    assert {unicodedata.category(chr(c))[0] for c in codes} <= set("LNPS")


def test_the_seed_chooses_and_more_classes_begin_with_fewer() -> None:
    assert choose_characters(100, 0) != choose_characters(100, 1)
    assert choose_characters(1000, 0)[:100] == choose_characters(100, 0)
    assert set(choose_characters(1000, 0)) <= set(distinct_characters())


def test_alike_pairs_are_those_of_the_full_comparison() -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(0, 256, (30, 16, 16))
    noisy = base[:, None] + rng.integers(-90, 90, (30, 4, 16, 16)) * rng.random((30, 4, 1, 1))
    masks = np.clip(noisy, 0, 255).astype(np.uint8).reshape(120, 16, 16)
    masks[7] = np.roll(masks[4], 4, axis=0)
    expected = np.nonzero(np.triu(relative_gap(masks) < TOLERANCE, 1))
    found = alike_pairs(masks)
    assert 20 < len(found[0]) < 30 * 6
    assert [x.tolist() for x in found] == [x.tolist() for x in expected]


def test_masks_are_centred_and_fill_their_side() -> None:
    codes = tuple(map(ord, "AgQ|—♥"))
    masks = glyph_masks("DejaVuSerif", codes, 40, 48)
    assert masks.shape == (6, 48, 48)
    for mask in masks:
        rows, columns = (np.nonzero(mask.any(axis=axis))[0] for axis in (1, 0))
        spans = [int(np.ptp(x)) + 1 for x in (rows, columns)]
        assert max(spans) in (40, 41, 42)
        for x in (rows, columns):
            assert abs(x[0] + x[-1] - 47) <= 1
    # upright: A narrows to its top
    assert masks[0][6].astype(int).sum() < masks[0][40].astype(int).sum()
    assert glyph_masks("DejaVuSerif", (), 40, 48).shape == (0, 48, 48)
    assert not glyph_masks("DejaVuSerif", (0x20,), 40, 48).any()


def test_masks_are_the_same_beside_other_characters() -> None:
    codes = distinct_characters()[:300]
    together = glyph_masks("DejaVuSans", codes, 32, 36)
    alone = np.concatenate([glyph_masks("DejaVuSans", (c,), 32, 36) for c in codes[250:260]])
    # an outline's place on the canvas is not rounded alike everywhere
    assert np.abs(together[250:260].astype(int) - alone).max() <= 2
