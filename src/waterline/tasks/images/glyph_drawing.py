"""Random affine changes, thickness, contrast and noise of glyph images."""

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import grid_sample

from waterline.runs.seeds import philox4x32, stream_key, uniforms
from waterline.tasks.images.glyph_faces import MARGIN

# Ranges of the uniform draws.
FILL = (0.62, 0.88)  # the outline's longer side over the image's
STRETCH = (0.85, 1.18)  # width over height
TURN = 0.10  # tan(θ/2): up to 11.4 degrees either way
SHEAR = 0.20
SHIFT = 0.05  # beyond the blank border, in half sides of the image
THINNER, THICKER = 0.6, 0.8  # most of the mix that is eroded, dilated
CONTRAST = (0.6, 1.0)
BACKGROUND = (0.0, 0.3)
NOISE = (0.05, 0.20)  # standard deviation
MEAN, SCALE = 0.30, 0.36  # of the pixels before normalisation, over images

_LEVELS = 1 << 12  # of a normal number drawn from 16 bits


def draw_glyphs(
    strokes: NDArray[np.uint8],
    rows: NDArray[np.int64],
    ids: NDArray[np.int64],
    size: int,
    seed: int,
) -> Tensor:
    """One image for each id, a function of its mask, its id, the seed and the size alone.

    Everything is elementwise over the batch, with sums and products only, so that an image has the
    same bits in whatever batch it is drawn.

    Args:
        strokes: (3, n, s, s) from :func:`stroke_masks`.
        rows: (b,) which of the n masks.
        ids: (b,) which draws.
        size: Pixels of the image's side.
        seed: Of the task.

    Returns:
        (b, 1, size, size) float32.
    """
    draws = uniforms(stream_key(seed, "glyphs", 0), ids, np.zeros_like(ids), np.arange(10))
    masks = torch.from_numpy(_thickness(strokes, rows, draws[:, 0]))[:, None]
    side = strokes.shape[-1]
    grid = torch.from_numpy(_grid(draws[:, 1:7], size) * np.float32(1 - 2 * MARGIN / side))
    ink = grid_sample(masks, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    contrast, background, deviation = (
        _column(_between(span, draws[:, 7 + i]))
        for i, span in enumerate((CONTRAST, BACKGROUND, NOISE))
    )
    noise = _normal(stream_key(seed, "glyphs/noise", 0), ids, size)
    pixels = ink.numpy()[:, 0] * contrast + background + noise * deviation
    pixels -= np.float32(MEAN)
    pixels *= np.float32(1 / SCALE)
    return torch.from_numpy(pixels)[:, None]


def _thickness(
    strokes: NDArray[np.uint8], rows: NDArray[np.int64], draw: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Between thinner and thicker strokes: (b, s, s)."""
    mix = 2 * draw - 1
    share = np.where(mix < 0, -THINNER * mix, THICKER * mix)
    normal = strokes[1, rows] * _column((1 - share) / 255)
    return normal + strokes[np.where(mix < 0, 0, 2), rows] * _column(share / 255)


def _grid(draws: NDArray[np.float64], size: int) -> NDArray[np.float32]:
    """For each pixel the place in its outline's square [−1, 1]² that it shows: (b, h, w, 2).

    A point u of the outline stands at A u + t in the image, with A = fill · rotation · shear ·
    stretch. The rotation is (1 − τ², 2τ) / (1 + τ²) with τ = tan(θ/2).
    """
    fill, stretch = _between(FILL, draws[:, 0]), _between(STRETCH, draws[:, 1])
    tau, shear = TURN * (2 * draws[:, 2] - 1), SHEAR * (2 * draws[:, 3] - 1)
    cos, sin = (1 - tau * tau) / (1 + tau * tau), 2 * tau / (1 + tau * tau)
    wide = np.where(stretch < 1, fill * stretch, fill)
    high = np.where(stretch < 1, fill, fill / stretch)
    # A = [[cos, −sin], [sin, cos]] · [[1, shear], [0, 1]] · diag(wide, high)
    a, b = cos * wide, (cos * shear - sin) * high
    c, d = sin * wide, (sin * shear + cos) * high
    room = 1 - fill + SHIFT
    right, down = room * (2 * draws[:, 4] - 1), room * (2 * draws[:, 5] - 1)
    inverse = 1 / (a * d - b * c)
    place = ((np.arange(size) + 0.5) * (2 / size) - 1).astype(np.float32)
    x, y = place[None, None, :], place[None, :, None]
    grid = np.empty((len(draws), size, size, 2), np.float32)
    for axis, (of_x, of_y) in enumerate(((d * inverse, -b * inverse), (-c * inverse, a * inverse))):
        start = _column(-(of_x * right + of_y * down))
        grid[..., axis] = _column(of_x) * x + (_column(of_y) * y + start)
    return grid


@cache
def _quantiles() -> NDArray[np.float32]:
    middles = (torch.arange(_LEVELS, dtype=torch.float64) + 0.5) / _LEVELS
    return torch.special.ndtri(middles).float().numpy()


def _normal(key: int, ids: NDArray[np.int64], size: int) -> NDArray[np.float32]:
    """Standard normal numbers: (b, size, size).

    A Philox block gives eight, by the quantiles of 12 of every 16 bits: an eighth of the blocks
    that one uniform a pixel would take.
    """
    words = ids.reshape(-1, 1).view(np.uint64)
    blocks = np.arange(-(-size * size // 8), dtype=np.uint64)[None]
    low, high, zero = words & np.uint64(0xFFFFFFFF), words >> np.uint64(32), np.zeros_like(words)
    bits = np.stack(philox4x32((low, high, zero, blocks), key), axis=1).astype(np.uint32)
    halves = np.concatenate([bits & np.uint32(0xFFF), bits >> np.uint32(20)], axis=1)
    pixels = halves.reshape(len(ids), 8 * blocks.size)[:, : size * size]
    return _quantiles()[pixels].reshape(-1, size, size)


def _between(span: tuple[float, float], draw: NDArray[np.float64]) -> NDArray[np.float64]:
    return span[0] + (span[1] - span[0]) * draw


def _column(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return values.astype(np.float32)[:, None, None]
