"""What real image files hold, through folders, and through a loader's workers."""

import os
import pickle
import struct
import time
import warnings
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile
from torch.utils.data import DataLoader
from torchvision import transforms as T

from waterline.tasks.images import Images, ImageSplit, ImageTask
from waterline.tasks.images.imagenet import ImageNetTask


def picture(seed: int, width: int = 40, height: int = 32) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, form: str = "JPEG", **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def broken_exif() -> bytes:
    # A TIFF header, then nine entries of which each promises far more bytes than there are.
    entry = struct.pack("<HHII", 0x8769, 2, 395_876_289, 2_555_904)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, 9) + entry * 3


def png_of(width: int, height: int) -> bytes:
    """A PNG that claims this size and holds one line of nothing."""

    def chunk(name: bytes, body: bytes = b"") -> bytes:
        check = zlib.crc32(name + body)
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", check)

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    line = chunk(b"IDAT", zlib.compress(b"\0" * 99))
    return b"\x89PNG\r\n\x1a\n" + header + line + chunk(b"IEND")


def palette_with_transparency() -> Image.Image:
    image = picture(5).quantize(16)
    image.info["transparency"] = bytes(range(0, 256, 16))
    return image


WHOLE = {
    "plain.JPEG": encoded(picture(0)),
    "png.JPEG": encoded(picture(1), "PNG"),
    "cmyk.JPEG": encoded(picture(2).convert("CMYK")),
    "grey.JPEG": encoded(picture(3).convert("L")),
    "broken_exif.JPEG": encoded(picture(4), exif=broken_exif()),
    "palette.png": encoded(palette_with_transparency(), "PNG"),
    "one_bit.png": encoded(picture(5).convert("1"), "PNG"),
    "grey_alpha.PNG": encoded(picture(6).convert("LA"), "PNG"),
    "one_pixel.bmp": encoded(picture(7, 1, 1), "BMP"),
}
DAMAGED = {
    "a_truncated.JPEG": encoded(picture(8, 200, 200), quality=95)[:-2000],
    "a_truncated.png": encoded(picture(8, 200, 200), "PNG")[:-2000],
    "b_header_alone.JPEG": encoded(picture(9))[:30],
    "c_empty.JPEG": b"",
    "d_text.JPEG": b"<html>404 Not Found</html>\n",
    "e_bomb.png": png_of(30_000, 30_000),
    "f_too_little.png": png_of(100, 100),
}


def write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three classes: sound files of many kinds, damaged ones among sound ones, plain ones."""
    write(tmp_path / "train/n01", WHOLE)
    write(tmp_path / "train/n02", {**DAMAGED, "e.JPEG": encoded(picture(20))})
    for folder, count in (("train/n03", 3), ("val/n01", 2), ("val/n03", 1)):
        write(tmp_path / folder, {f"{i}.jpg": encoded(picture(30 + i)) for i in range(count)})
    write(tmp_path / "val/n02", {"x.jpg": encoded(picture(40))[:-200]})
    write(tmp_path / "val/n02", {"y.jpg": encoded(picture(41))})
    return tmp_path


def small(root: Path, **options: Any) -> ImageNetTask:
    return ImageNetTask(root, **{"classes": 3, "crop": 16, "resize": 20, **options})


def same(a: Images, b: Images) -> bool:
    return (
        torch.equal(a.pixels, b.pixels)
        and a.pixels.dtype == b.pixels.dtype
        and np.array_equal(a.ids, b.ids)
        and np.array_equal(a.labels, b.labels)
        and a.unreadable == b.unreadable
    )


def test_ids_and_labels_follow_the_sorted_names(root: Path) -> None:
    task = small(root)
    image_task: ImageTask = task
    assert (image_task.classes, image_task.has_likelihood) == (3, True)
    n = len(WHOLE) + len(DAMAGED) + 1 + 3
    train, dev, test = (task.splits[name] for name in ("train", "dev", "test"))
    assert train.ids.tolist() == list(range(n))
    assert dev.ids.tolist() == list(range(n, n + 5)) == test.ids.tolist()
    assert train.ids.dtype == np.int64
    images = train.load(range(n), None)
    readable = sorted(WHOLE)
    first = train.load([readable.index("plain.JPEG")], None)
    expected = small_evaluation(Image.open(BytesIO(WHOLE["plain.JPEG"])))
    assert torch.equal(first.pixels[0], expected)
    assert images.labels.tolist() == [0] * len(WHOLE) + [1] + [2] * 3
    assert images.pixels.dtype == torch.float32
    assert images.labels.dtype == np.int64
    assert dev.load(range(5), None).labels.tolist() == [0, 0, 1, 2]


def test_an_image_to_train_on_and_to_test_on_is_refused(root: Path) -> None:
    task = small(root)
    with pytest.raises(ValueError, match=r"^train/n03/0.jpg below .* stand in val/ as well"):
        task.require_disjoint()
    (root / "val/n03/0.jpg").write_bytes(encoded(picture(99)))
    task.require_disjoint()  # another image of that name
    (root / "val/n02/e.JPEG").symlink_to(root / "train/n02/e.JPEG")
    with pytest.raises(ValueError, match=r"train/n02/e.JPEG"):
        small(root).require_disjoint()


def test_a_file_more_changes_the_fingerprint(root: Path) -> None:
    before = small(root).fingerprint
    assert small(root).fingerprint == before
    (root / "val/n02/z.jpg").write_bytes(b"")
    assert small(root).fingerprint != before
    (root / "val/n02/z.jpg").rename(root / "val/n01/z.jpg")
    assert small(root).fingerprint != before


def small_evaluation(image: Image.Image) -> torch.Tensor:

    normalise = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    pixels: torch.Tensor = T.Compose([T.Resize(20), T.CenterCrop(16), T.ToTensor(), normalise])(
        image
    )
    return pixels


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("key", [None, 7])
def test_odd_files_are_read(root: Path, name: str, key: int | None) -> None:
    row = sorted(WHOLE).index(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        images = small(root).splits["train"].load([row], key)
    assert images.pixels.shape == (1, 3, 16, 16)
    assert images.pixels.isfinite().all()
    assert images.ids.tolist() == [row]
    assert not images.unreadable
    if key is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = small_evaluation(Image.open(BytesIO(WHOLE[name])).convert("RGB"))
        assert torch.equal(images.pixels[0], expected)


def test_these_files_are_what_others_warn_of() -> None:
    for name, text in (("broken_exif.JPEG", "Corrupt EXIF"), ("palette.png", "Transparency")):
        with pytest.warns(UserWarning, match=text):
            Image.open(BytesIO(WHOLE[name])).convert("RGB")
    assert Image.open(BytesIO(WHOLE["png.JPEG"])).format == "PNG"
    assert Image.open(BytesIO(WHOLE["cmyk.JPEG"])).mode == "CMYK"


def test_the_orientation_in_exif_is_not_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6
    files = {"a.jpg": encoded(picture(1)), "b.jpg": encoded(picture(1), exif=exif)}
    for folder in ("train/x", "train/y", "validation/x", "validation/y"):
        write(tmp_path / folder, files)
    pixels = small(tmp_path, classes=2).splits["dev"].load([0, 1], None).pixels
    assert torch.equal(pixels[0], pixels[1])


@pytest.mark.parametrize("key", [None, 3])
def test_damaged_files_are_named_and_leave_the_others_alone(root: Path, key: int | None) -> None:
    train = small(root).splits["train"]
    n = len(train)
    images = train.load(range(n), key)
    assert [u.name.removeprefix("train/n02/") for u in images.unreadable] == sorted(DAMAGED)
    assert len(images.ids) == n - len(DAMAGED)
    assert sorted([*images.ids.tolist(), *(u.id for u in images.unreadable)]) == list(range(n))
    alone = [train.load([i], key) for i in images.ids.tolist()]
    assert torch.equal(images.pixels, torch.cat([a.pixels for a in alone]))
    reasons = {u.name.rpartition("/")[2]: u.reason for u in images.unreadable}
    assert reasons["c_empty.JPEG"] == "the file is empty"
    assert reasons["d_text.JPEG"] == "the file is no image that Pillow can read"
    assert "truncated" in reasons["a_truncated.JPEG"]
    assert "DecompressionBombError" in reasons["e_bomb.png"]
    assert all(reason and "\n" not in reason for reason in reasons.values())


def test_a_batch_may_be_empty_or_all_damaged(root: Path) -> None:
    train = small(root).splits["train"]
    damaged = [u.id for u in train.load(range(len(train)), None).unreadable]
    for rows, key in (([], None), ([], 1), (damaged, 1)):
        images = train.load(rows, key)
        assert images.pixels.shape == (0, 3, 16, 16)
        assert images.ids.shape == images.labels.shape == (0,)
        assert [u.id for u in images.unreadable] == rows
    with pytest.raises(IndexError):
        train.load([len(train)], None)


def test_a_file_that_vanished_is_unreadable(root: Path) -> None:
    train = small(root).splits["train"]
    (root / "train/n03/1.jpg").unlink()
    (missing,) = train.load([len(train) - 2], 0).unreadable
    assert (missing.name, missing.reason) == ("train/n03/1.jpg", "No such file or directory")


def test_an_image_too_narrow_to_resize_is_unreadable(root: Path) -> None:
    (root / "val/n01/0.jpg").write_bytes(encoded(Image.new("L", (400_000, 1)), "PNG"))
    (narrow,) = small(root).splits["dev"].load([0], None).unreadable
    assert narrow.reason == "the image is too narrow, 400000 × 1 pixels"


class Batches(torch.utils.data.Dataset[Images]):
    def __init__(self, split: ImageSplit, rows: list[list[int]], key: int | None) -> None:
        self.split, self.rows, self.key = split, rows, key

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> Images:
        return self.split.load(self.rows[i], self.key)


@pytest.mark.parametrize("key", [None, 11])
def test_workers_do_not_change_a_bit(root: Path, key: int | None) -> None:
    train = small(root).splits["train"]
    order = np.random.default_rng(0).permutation(len(train)).tolist()
    batches = Batches(train, [order[i : i + 6] for i in range(0, len(order), 6)], key)
    torch.manual_seed(0)
    alone = list(DataLoader(batches, batch_size=None))
    torch.manual_seed(1)
    assert torch.initial_seed() == 1
    many = list(DataLoader(batches, batch_size=None, num_workers=2))
    assert len(alone) == len(many) == 4
    assert all(map(same, alone, many))


def test_augmentation_is_of_key_and_id_alone(root: Path) -> None:
    train = small(root).splits["train"]
    rows = [0, 1, 3, len(train) - 1]
    a, b = train.load(rows, 5), train.load(rows, 6)
    state = torch.get_rng_state()
    again = pickle.loads(pickle.dumps(train)).load(rows, 5)
    assert same(a, again)
    assert torch.equal(state, torch.get_rng_state())
    backwards = train.load(rows[::-1], 5)
    assert torch.equal(a.pixels, backwards.pixels.flip(0))
    assert all(not torch.equal(x, y) for x, y in zip(a.pixels[1:], b.pixels[1:], strict=True))
    # The same picture under two ids is augmented in two ways.
    (root / "train/n03/1.jpg").write_bytes((root / "train/n03/0.jpg").read_bytes())
    x, y = train.load([len(train) - 3, len(train) - 2], 5).pixels
    assert not torch.equal(x, y)


def test_hidden_and_other_files_are_ignored(root: Path) -> None:
    before = small(root)
    write(root / "train/n01", {".DS_Store": b"x", "._plain.JPEG": b"x", "readme.txt": b"x"})
    write(root / "val/.cache", {"a.jpg": b"x"})
    (root / "train/n01/folder.jpg").mkdir()
    os.mkfifo(root / "train/n01/pipe.jpg")
    (root / "train/index.json").write_text("{}")
    after = small(root)
    for name in before.splits:
        assert np.array_equal(before.splits[name].ids, after.splits[name].ids)
    assert same(before.splits["train"].load([0, 8], 1), after.splits["train"].load([0, 8], 1))


def test_links_to_files_and_class_folders_are_followed(root: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    (linked / "train").mkdir(parents=True)
    (linked / "val").symlink_to(root / "val")
    for name in ("n01", "n02"):
        (linked / "train" / name).symlink_to(root / "train" / name)
    (linked / "train/n03").mkdir()
    for file in (root / "train/n03").iterdir():
        (linked / "train/n03" / file.name).symlink_to(file)
    real, links = small(root).splits["train"], small(linked).splits["train"]
    assert same(real.load(range(len(real)), 2), links.load(range(len(links)), 2))


def test_names_that_are_no_unicode(root: Path) -> None:
    for name in (b"\xff.jpg", "é.jpg".encode()):
        (root / "val/n03" / os.fsdecode(name)).write_bytes(encoded(picture(1)))
    dev = small(root).splits["dev"]
    assert len(dev) == 7
    assert len(dev.load([5, 6], None).ids) == 2


def remove(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def rename_all(root: Path) -> None:
    for i in range(5):
        write(root / f"train/m{i}", {"a.jpg": b""})


def one_class_more(root: Path) -> None:
    for split in ("train", "val"):
        write(root / split / "n04", {"a.jpg": b""})


def flat(root: Path) -> None:
    for name in ("n01", "n02", "n03"):
        remove(root / "val" / name)
    write(root / "val", {"ILSVRC2012_val_00000001.JPEG": b""})


def no_images(root: Path) -> None:
    remove(root / "val/n02")
    write(root / "val/n02", {"a.txt": b""})


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda r: remove(r / "val/n02"), r"val has no class folder n02,"),
        (lambda r: remove(r / "train/n03"), r"train has no class folder n03,"),
        (rename_all, r"val has no class folder m0, m1, m2 and 2 more,"),
        (one_class_more, r"has 4 class folders, n01, n02, n03 and 1 more, but .*classes is 3"),
        (no_images, r"n02 holds no image"),
        (lambda r: (r / "val").rename(r / "dev"), r"has no folder val/ \(or validation/\)"),
        (lambda r: (r / "train").rename(r / "training"), r"has no folder train/"),
        (lambda r: r.rename(r.with_name("moved")), r"There is no folder .*; set task\.root"),
        (flat, r"val has no class folders; sort its images"),
    ],
)
def test_folders_that_do_not_fit_are_one_quick_sentence(root: Path, damage, sentence: str) -> None:
    damage(root)
    start = time.process_time()
    with pytest.raises(ValueError, match=sentence) as caught:
        small(root)
    assert time.process_time() - start < 1
    assert "\n" not in str(caught.value)


def test_fewer_class_folders_than_classes(root: Path) -> None:
    with pytest.raises(ValueError, match=r"has 3 class folders.*task\.classes is 1000.*classes=3"):
        ImageNetTask(root)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"classes": 1}, "classes=1: must be a whole number of at least 2"),
        ({"crop": 0}, "crop=0: must be a whole number"),
        ({"crop": 224, "resize": 200}, "crop is 224 and task.resize 200"),
    ],
)
def test_impossible_sizes_are_one_sentence(root: Path, options, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        small(root, **options)


def test_many_files_are_found_at_once_and_pickled_small(tmp_path: Path) -> None:
    for split, count in (("train", 400), ("val", 10)):
        for name in map(str, range(10)):
            (tmp_path / split / name).mkdir(parents=True)
            for i in range(count):
                (tmp_path / split / name / f"{i}.JPEG").touch()
    start = time.process_time()
    task = ImageNetTask(tmp_path, classes=10)
    assert time.process_time() - start < 2
    assert len(task.splits["train"]) == 4_000
    assert len(pickle.dumps(task.splits["train"])) < 4_000 * 40


def test_settings_of_the_library_are_left_alone(root: Path) -> None:
    def settings() -> tuple[Any, ...]:
        return Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters)

    before = settings()
    train = small(root).splits["train"]
    train.load(range(len(train)), 1)
    assert settings() == before
