"""The font faces that matplotlib ships, and their characters as masks in three thicknesses."""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import ft2font, get_data_path
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.path import Path as Outline
from matplotlib.transforms import IdentityTransform
from numpy.typing import NDArray

TRAIN_FACES = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif")
DEV_FACES = ("DejaVuSerif-Bold",)
TEST_FACES = ("DejaVuSansMono",)
ALL_FACES = TRAIN_FACES + DEV_FACES + TEST_FACES
MARGIN = 2  # blank pixels around an outline, of which a dilation takes one

_FLAGS: Any = getattr(ft2font, "LoadFlags", None)  # plain numbers until matplotlib 3.10
_NO_HINTING: Any = 2 if _FLAGS is None else _FLAGS.NO_HINTING
_EM = 2048  # pixels, those of the grid the outlines are designed on: nothing is rounded
_ROW = 16  # masks next to and below each other on one canvas


def _file(face: str) -> Path:
    return Path(get_data_path(), "fonts", "ttf", f"{face}.ttf")


@cache
def faces_digest() -> str:
    """A digest of the files of all faces."""
    files = b"".join(_file(face).read_bytes() for face in ALL_FACES)
    return hashlib.sha256(files).hexdigest()[:12]


@cache
def _font(face: str) -> ft2font.FT2Font:
    font = ft2font.FT2Font(str(_file(face)))
    font.set_size(_EM, 72)
    return font


def charmap(face: str) -> set[int]:
    """The code points that a face has a glyph for, other than ``.notdef``."""
    return {code for code, glyph in _font(face).get_charmap().items() if glyph}


def glyph_masks(face: str, codes: Sequence[int], side: int, tile: int) -> NDArray[np.uint8]:
    """Characters of a face, each centred and scaled so that its longer side fills ``side`` pixels.

    Two outlines that agree up to translation and uniform scale have the same mask.

    Args:
        face: Name of a face, such as those of ``ALL_FACES``.
        codes: (n,) code points of the face's charmap.
        side: Pixels of the longer side of the outline's box.
        tile: Pixels of a mask's side, at least ``side``.

    Returns:
        (n, tile, tile) coverage of the pixels, 0 to 255; all 0 for a character without an outline.
    """
    sheets = [
        _sheet(_font(face), codes[i : i + _ROW * _ROW], side, tile)
        for i in range(0, len(codes), _ROW * _ROW)
    ]
    return np.concatenate([np.zeros((0, tile, tile), np.uint8), *sheets])


def _sheet(font: ft2font.FT2Font, codes: Sequence[int], side: int, tile: int) -> NDArray[np.uint8]:
    renderer = RendererAgg(_ROW * tile, _ROW * tile, 72)
    context = renderer.new_gc()
    context.set_linewidth(0)
    context.set_snap(False)
    for i, code in enumerate(codes):
        font.load_char(code, flags=_NO_HINTING)
        points, kinds = font.get_path()
        box = points[kinds != Outline.CLOSEPOLY]  # whose points mean nothing
        extent = np.ptp(box, axis=0).max() if len(box) else 0.0
        if extent > 0:
            row, column = divmod(i, _ROW)
            centre = ((column + 0.5) * tile, (_ROW - row - 0.5) * tile)  # y points up
            middle = (box.min(axis=0) + box.max(axis=0)) / 2
            outline = Outline((points - middle) * (side / extent) + centre, kinds)
            renderer.draw_path(context, outline, IdentityTransform(), (0.0, 0.0, 0.0))
    alpha = np.asarray(renderer.buffer_rgba())[..., 3]
    tiles = alpha.reshape(_ROW, tile, _ROW, tile).swapaxes(1, 2).reshape(-1, tile, tile)
    return tiles[: len(codes)].copy()


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
