"""The random crop against torchvision's own."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms as T

from waterline.tasks.images.transforms import (
    DRAWS,
    MEAN,
    RATIO,
    SCALE,
    STD,
    TRIES,
    ImageNetTransform,
    random_crop_box,
)

SIZES = [(256, 256), (375, 500), (500, 200), (12, 9), (3, 3), (1, 1), (1, 40), (90, 2), (40, 10)]


def theirs(height: int, width: int) -> tuple[int, int, int, int]:
    image = torch.empty(1, height, width)
    box: tuple[int, int, int, int] = T.RandomResizedCrop.get_params(image, list(SCALE), list(RATIO))
    return box


def draws(seed: int, n: int) -> list[list[float]]:
    found: list[list[float]] = np.random.default_rng(seed).random((n, 4 * TRIES)).tolist()
    return found


class Replay:
    """Torch's generators of ``get_params``, replaced by given uniforms."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, values: list[float]) -> None:
        self.values = iter(values)
        monkeypatch.setattr(torch, "empty", lambda *_: self)
        monkeypatch.setattr(torch, "randint", self.randint)

    def uniform_(self, low: float, high: float) -> torch.Tensor:
        return torch.tensor(float(low) + next(self.values) * float(high - low), dtype=torch.float64)

    def randint(self, low: int, high: int, size: tuple[int, ...]) -> torch.Tensor:
        return torch.tensor(low + int(next(self.values) * (high - low)))


@pytest.mark.parametrize("size", SIZES)
def test_the_crop_is_torchvisions_for_the_same_uniforms(size, monkeypatch) -> None:
    image = torch.zeros(1, *size)
    for row in draws(sum(size), 60):
        ours = random_crop_box(*size, row)
        # torchvision draws no place for a try that does not fit; here each try has four draws.
        used: list[float] = []
        for i in range(0, 4 * TRIES, 4):
            area = size[0] * size[1] * (SCALE[0] + row[i] * (SCALE[1] - SCALE[0]))
            ratio = RATIO[0] * (RATIO[1] / RATIO[0]) ** row[i + 1]
            fits = (
                0 < round((area * ratio) ** 0.5) <= size[1]
                and 0 < round((area / ratio) ** 0.5) <= size[0]
            )
            used += row[i : i + 4] if fits else row[i : i + 2]
            if fits:
                break
        with monkeypatch.context() as patch:
            Replay(patch, used)
            assert ours == T.RandomResizedCrop.get_params(image, list(SCALE), list(RATIO))


@pytest.mark.parametrize("size", [(256, 256), (200, 300), (100, 30)])
def test_crops_are_distributed_as_torchvisions(size: tuple[int, int]) -> None:
    n = 1500
    ours = np.array([random_crop_box(*size, row) for row in draws(0, n)], dtype=float)
    torch.manual_seed(0)
    other = np.array([theirs(*size) for _ in range(n)], dtype=float)
    for a, b in zip(ours.T, other.T, strict=True):
        both = np.sort(np.concatenate([a, b]))
        cdf = [np.searchsorted(np.sort(x), both, side="right") / n for x in (a, b)]
        # Two-sample Kolmogorov–Smirnov distance; 1.95 √(2/n) is exceeded once in a thousand.
        assert np.abs(cdf[0] - cdf[1]).max() < 1.95 * (2 / n) ** 0.5


@pytest.mark.parametrize("size", SIZES)
def test_crops_lie_within_the_image(size: tuple[int, int]) -> None:
    extremes = [[low] * (4 * TRIES) for low in (0.0, 0.5, 1 - 2**-53)]
    for row in [*draws(1, 300), *extremes]:
        top, left, height, width = random_crop_box(*size, row)
        assert height > 0
        assert width > 0
        assert 0 <= top <= size[0] - height
        assert 0 <= left <= size[1] - width


@pytest.mark.parametrize(
    ("size", "box"),
    [((30, 300), (0, 130, 30, 40)), ((300, 30), (130, 0, 40, 30)), ((1, 40), (0, 19, 1, 1))],
)
def test_when_no_try_fits_the_crop_is_central(size, box) -> None:
    whole_area = [1 - 2**-53, 0.5, 0.3, 0.3] * TRIES
    assert random_crop_box(*size, whole_area) == box


def test_the_last_try_counts_and_an_eleventh_is_not_made() -> None:
    too_wide, fits = [1 - 2**-53, 0.5, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0]
    assert random_crop_box(30, 300, too_wide * 9 + fits) == (0, 0, 27, 27)
    assert random_crop_box(30, 300, too_wide * 10 + fits) == (0, 130, 30, 40)


@pytest.mark.parametrize("flip", [0.49, 0.5])
def test_training_is_crop_flip_and_normalisation(flip: float) -> None:
    image = Image.fromarray(np.random.default_rng(2).integers(0, 256, (60, 80, 3), dtype=np.uint8))
    row = [flip, *draws(3, 1)[0]]
    assert len(row) == DRAWS
    top, left, height, width = random_crop_box(60, 80, row[1:])
    part = image.crop((left, top, left + width, top + height))
    part = part.resize((24, 24), Image.Resampling.BILINEAR)
    if flip < 0.5:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    expected = (np.asarray(part, dtype=np.float64) / 255 - MEAN) / STD
    pixels = ImageNetTransform(24, 30).train(image, row)
    assert pixels.dtype == torch.float32
    np.testing.assert_allclose(pixels.permute(1, 2, 0).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("size", [(256, 256), (300, 500), (31, 17), (1, 1)])
def test_evaluation_is_torchvisions_pipeline(size: tuple[int, int]) -> None:
    values = np.random.default_rng(4).integers(0, 256, (*size, 3), dtype=np.uint8)
    image = Image.fromarray(values)
    pipeline = T.Compose(
        [T.Resize(256), T.CenterCrop(224), T.ToTensor(), T.Normalize(mean=MEAN, std=STD)]
    )
    assert torch.equal(ImageNetTransform(224, 256).evaluation(image), pipeline(image))
