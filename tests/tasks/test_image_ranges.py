"""What Pillow opens arrives as RGB from black 0 to white 255, or is reported."""

import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, features

from waterline.tasks.images.image_files import decode_rgb
from waterline.tasks.images.imagenet import ImageNetTask

LEVELS = np.linspace(0, 1, 32 * 32).reshape(32, 32)
"""From black to white; whatever holds them arrives as the same picture."""
COLOURS = np.stack([LEVELS, LEVELS.T, 1 - LEVELS], -1)


def image(array: NDArray[Any]) -> Image.Image:
    return Image.fromarray(array)


def encoded(picture: Image.Image, form: str, **options: Any) -> bytes:
    file = BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()


def stored(top: float, kind: str) -> NDArray[Any]:
    return (LEVELS * top).astype(kind)


def png(depth: int, colour: int, samples: NDArray[Any]) -> bytes:
    def chunk(name: bytes, body: bytes = b"") -> bytes:
        check = zlib.crc32(name + body)
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", check)

    height, width = samples.shape[:2]
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    lines = b"".join(b"\0" + line.astype(">u2").tobytes() for line in samples)
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND")


def tiff(data: bytes, bits: int, kind: int = 1, photometric: int = 1, samples: int = 1) -> bytes:
    """An uncompressed TIFF of 32 × 32 pixels; ``kind`` is its sample format."""
    entries = [
        (256, [32]), (257, [32]), (258, [bits] * samples), (259, [1]), (262, [photometric]),
        (273, [0]), (277, [samples]), (278, [32]), (279, [len(data)]), (339, [kind] * samples),
    ]  # fmt: skip
    place = 8 + 2 + 12 * len(entries) + 4
    directory, beyond = b"", b""
    for tag, values in entries:
        body = b"".join(struct.pack("<H", value) for value in values)
        if tag == 273:
            body = struct.pack("<H", place + 2 * 6 * (samples > 2))
        if len(body) > 4:
            body, beyond = struct.pack("<I", place + len(beyond)), beyond + body
        directory += struct.pack("<HHI", tag, 3, len(values)) + body.ljust(4, b"\0")
    head = b"II*\0" + struct.pack("<IH", 8, len(entries)) + directory + struct.pack("<I", 0)
    return head + beyond + data


def twelve_bits() -> bytes:
    a, b = stored(4095, "u2").reshape(-1, 2).T
    return np.stack([a >> 4, (a & 15) << 4 | b >> 8, b & 255], -1).astype(np.uint8).tobytes()


GREY = {
    "16-bit PNG": encoded(image(stored(65535, "u2")), "PNG"),
    "16-bit TIFF": encoded(image(stored(65535, "u2")), "TIFF"),
    "16-bit TIFF, big-endian": encoded(image(stored(65535, ">u2")), "TIFF"),
    "16-bit TIFF, white is zero": tiff(stored(65535, "<u2")[::-1, ::-1].tobytes(), 16, 1, 0),
    "16-bit TIFF, undefined kind": tiff(stored(65535, "<u2").tobytes(), 16),
    "12-bit TIFF": tiff(twelve_bits(), 12),
    "16-bit PGM": b"P5 32 32 65535\n" + stored(65535, ">u2").tobytes(),
    "10-bit PGM": b"P5 32 32 1023\n" + stored(1023, ">u2").tobytes(),
    "7-bit PGM": b"P5 32 32 100\n" + stored(100, "u1").tobytes(),
    "16-bit PNG with transparency": png(16, 4, np.stack([stored(65535, "u2")] * 2, -1)),
}
if features.check("jpg_2000"):
    GREY["16-bit JPEG 2000"] = encoded(image(stored(65535, "u2")), "JPEG2000")
COLOUR = {
    "16-bit PNG": png(16, 2, (COLOURS * 65535).astype("u2")),
    "16-bit TIFF": tiff((COLOURS * 65535).astype("<u2").tobytes(), 16, 1, 2, 3),
    "16-bit PPM": b"P6 32 32 65535\n" + (COLOURS * 65535).astype(">u2").tobytes(),
    "10-bit PPM": b"P6 32 32 1023\n" + (COLOURS * 1023).astype(">u2").tobytes(),
}


@pytest.mark.parametrize("name", GREY)
def test_grey_levels_of_any_depth_are_scaled(name: str) -> None:
    pixels = np.asarray(decode_rgb(GREY[name])).astype(float)
    assert pixels.shape == (32, 32, 3)
    assert (pixels.min(), pixels.max()) == (0, 255)
    assert np.abs(pixels - 255 * LEVELS[..., None]).max() <= 3.1  # the coarsest has 101


@pytest.mark.parametrize("name", COLOUR)
def test_colours_of_any_depth_are_scaled(name: str) -> None:
    pixels = np.asarray(decode_rgb(COLOUR[name])).astype(float)
    assert np.abs(pixels - 255 * COLOURS).max() <= 1


UNKNOWN = {
    "fractions up to 1": encoded(image(stored(1, "f4")), "TIFF"),
    "fractions up to 255": encoded(image(stored(255, "f4")), "TIFF"),
    "fractions and no numbers": encoded(image(np.full((32, 32), np.nan, dtype="f4")), "TIFF"),
    "negative fractions": encoded(image(stored(2, "f4") - np.float32(1)), "TIFF"),
    "PFM": encoded(image(stored(1, "f4")), "PPM"),
    "32 bits, signed": encoded(image(stored(65535, "i4")), "TIFF"),
    "32 bits": tiff(stored(2**32 - 1, "<u4").tobytes(), 32),
    "16 bits, signed": tiff((stored(60000, "i4") - 30000).astype("<i2").tobytes(), 16, 2),
    "8 bits, signed": tiff((stored(200, "i4") - 100).astype("i1").tobytes(), 8, 2),
    "16 bits of a format that does not say": encoded(image(stored(65535, "u2")), "IM"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_ranges_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="black and white are unknown"):
        decode_rgb(UNKNOWN[name])


def plain(mode: str) -> Image.Image:
    return image((COLOURS * 255).astype(np.uint8)).convert(mode)


SAME = {
    **{f"{mode} JPEG": encoded(plain(mode), "JPEG") for mode in ("L", "RGB", "CMYK")},
    **{f"{m} PNG": encoded(plain(m), "PNG") for m in ("1", "L", "LA", "P", "RGB", "RGBA")},
    **{f"{m} TIFF": encoded(plain(m), "TIFF") for m in ("1", "L", "PA", "RGB", "CMYK", "YCbCr")},
    "progressive JPEG": encoded(plain("RGB"), "JPEG", progressive=True, subsampling=0),
    "BMP": encoded(plain("RGB"), "BMP"),
    "white is zero": tiff(stored(255, "u1").tobytes(), 8, 1, 0),
    "first of two pages": encoded(plain("RGB"), "TIFF", save_all=True, append_images=[plain("L")]),
    "first of two frames": encoded(plain("P"), "GIF", save_all=True, append_images=[plain("P")]),
    "colour profile": encoded(plain("RGB"), "PNG", icc_profile=b"no profile"),
}
if features.check("webp"):
    SAME["WebP"] = encoded(plain("RGBA"), "WEBP", lossless=True)


@pytest.mark.parametrize("name", SAME)
def test_eight_bits_are_what_pillow_converts_them_to(name: str) -> None:
    expected = Image.open(BytesIO(SAME[name])).convert("RGB")
    assert decode_rgb(SAME[name]).tobytes() == expected.tobytes()


@pytest.mark.parametrize("share", [0.3, 0.6])
@pytest.mark.parametrize("name", ["RGB JPEG", "progressive JPEG", "L PNG", "CMYK TIFF", "BMP"])
def test_half_an_image_is_none(name: str, share: float) -> None:
    with pytest.raises((OSError, ValueError, SyntaxError)):
        decode_rgb(SAME[name][: int(len(SAME[name]) * share)])


def test_unknown_ranges_are_reported_like_damaged_files(tmp_path: Path) -> None:
    for split in ("train", "val"):
        for name in ("a", "b"):
            folder = tmp_path / split / name
            folder.mkdir(parents=True)
            (folder / "0.tif").write_bytes(UNKNOWN["fractions up to 1"])
            (folder / "1.png").write_bytes(GREY["16-bit PNG"])
    images = (
        ImageNetTask(tmp_path, classes=2, crop=16, resize=20).splits["dev"].load(range(4), None)
    )
    assert [u.name for u in images.unreadable] == ["val/a/0.tif", "val/b/0.tif"]
    assert all("black and white are unknown" in u.reason for u in images.unreadable)
    assert len(images.ids) == 2
