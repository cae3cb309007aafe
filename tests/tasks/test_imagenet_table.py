"""The data set of the Hub: the same code on a small one in a local folder."""

import pickle
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import transforms as T

from waterline.tasks.images import Images
from waterline.tasks.images.imagenet import ImageNetTask

datasets = pytest.importorskip("datasets")


def encoded(seed: int, mode: str = "RGB", form: str = "JPEG") -> bytes:
    values = np.random.default_rng(seed).integers(0, 256, (24, 30, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(values).convert(mode).save(file, form)
    return file.getvalue()


TRAIN = [
    encoded(0),
    encoded(1, "CMYK"),
    encoded(2)[:-300],
    encoded(3, "L", "PNG"),
    b"",
    encoded(5),
]
VALIDATION = [encoded(6), b"not an image", encoded(8)]
TRAIN_LABELS = [2, 0, 1, 1, 0, 1]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


def save(folder: Path, split: str, files: list[Any], labels: list[Any], kind: Any = None) -> None:
    features = {"image": datasets.Image(), "label": kind or datasets.ClassLabel(names=list("abc"))}
    rows = {"image": [{"bytes": f, "path": None} for f in files], "label": labels}
    table = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    folder.mkdir(exist_ok=True)
    table.to_parquet(folder / f"{split}-00000-of-00001.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "data", "train", TRAIN, TRAIN_LABELS)
    save(tmp_path / "data", "validation", VALIDATION, [0, 1, 2])
    return tmp_path / "data"


def small(folder: Path, **options: Any) -> ImageNetTask:
    return ImageNetTask(dataset=str(folder), **{"classes": 3, "crop": 16, "resize": 20, **options})


def test_rows_are_ids_and_bad_ones_are_named(folder: Path) -> None:
    task = small(folder)
    train, dev = task.splits["train"], task.splits["dev"]
    assert task.splits["test"] is dev
    assert train.ids.tolist() == [0, 1, 2, 3, 4, 5]
    assert dev.ids.tolist() == [6, 7, 8]
    images = train.load([5, 4, 3, 2, 1, 0], None)
    assert images.ids.tolist() == [5, 3, 1, 0]
    assert images.labels.tolist() == [1, 1, 0, 2]
    assert [(u.id, u.name) for u in images.unreadable] == [
        (4, f"row 4 of {folder} (train)"),
        (2, f"row 2 of {folder} (train)"),
    ]
    assert "truncated" in images.unreadable[1].reason
    (bad,) = dev.load([0, 1, 2], None).unreadable
    assert (bad.id, bad.reason) == (7, "the file is no image that Pillow can read")
    evaluation = T.Compose([T.Resize(20), T.CenterCrop(16), T.ToTensor()])
    for image, row in zip(images.pixels, images.ids.tolist(), strict=True):
        expected = evaluation(Image.open(BytesIO(TRAIN[row])).convert("RGB"))
        normalise = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
        assert torch.equal(image, normalise(expected))


class Batches(torch.utils.data.Dataset[Images]):
    def __init__(self, task: ImageNetTask) -> None:
        self.split = task.splits["train"]

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> Images:
        return self.split.load([5 - i, i], 3)


def test_workers_do_not_change_a_bit(folder: Path) -> None:
    batches = Batches(small(folder))
    alone = list(DataLoader(batches, batch_size=None))
    many = list(DataLoader(batches, batch_size=None, num_workers=2))
    pickled = list(DataLoader(pickle.loads(pickle.dumps(batches)), batch_size=None))
    for a, *others in zip(alone, many, pickled, strict=True):
        for b in others:
            assert torch.equal(a.pixels, b.pixels)
            assert a.ids.tolist() == b.ids.tolist()
            assert a.unreadable == b.unreadable


def test_files_beside_a_table_and_rows_without_one(tmp_path: Path) -> None:
    (tmp_path / "x.JPEG").write_bytes(encoded(1))
    images = [{"bytes": encoded(1), "path": "n01_1.JPEG"}, None, {"bytes": None, "path": None}]
    images += [{"bytes": None, "path": str(tmp_path / "x.JPEG")}]
    (tmp_path / "data").mkdir()
    for split in ("train", "validation"):
        table = pa.table({"image": images, "label": [0, 1, 1, 1]})  # without datasets' own schema
        pq.write_table(table, tmp_path / "data" / f"{split}.parquet")
    loaded = small(tmp_path / "data", classes=2).splits["train"].load([0, 1, 2, 3], None)
    assert loaded.ids.tolist() == [0, 3]
    assert torch.equal(loaded.pixels[0], loaded.pixels[1])
    assert [u.reason for u in loaded.unreadable] == ["the row holds no image"] * 2


@pytest.mark.parametrize(
    ("labels", "kind", "sentence"),
    [
        ([0, 1, 2, 3, 4, 0], "int64", r"Row 3 of .*has the label 3, outside 0 to 2, as have 1 m"),
        ([0, 1, -1, 2, 0, 0], "int32", r"Row 2 of .*\(train\) has the label -1"),
        ([0, 0, 2, 2, 2, 0], "int64", r"\(train\) has no image of class 1; complete it"),
        ([0, 1, None, 2, 2, 0], "int64", r"labels that are not whole numbers, of type int64 with"),
        ([0.0, 1.0, 2.0, 2.5, 2.0, 0.0], "float32", r"not whole numbers, of type float;"),
    ],
)
def test_labels_out_of_range_are_one_sentence(
    tmp_path: Path, labels: list[Any], kind: str, sentence: str
) -> None:
    save(tmp_path / "data", "train", TRAIN, labels, datasets.Value(kind))
    save(tmp_path / "data", "validation", VALIDATION, [0, 1, 2], datasets.Value(kind))
    start = time.process_time()
    with pytest.raises(ValueError, match=sentence) as caught:
        small(tmp_path / "data")
    assert time.process_time() - start < 5
    assert "\n" not in str(caught.value)


def test_another_number_of_classes_is_one_sentence(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"has 3 classes, but task\.classes is 1000; set .*=3"):
        ImageNetTask(dataset=str(folder))


def test_a_missing_column_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for split in ("train", "validation"):
        table = datasets.Dataset.from_dict({"image": ["a"], "category": [0]})
        table.to_parquet(tmp_path / "data" / f"{split}.parquet")
    with pytest.raises(ValueError, match=r"has no column label; take a data set with"):
        small(tmp_path / "data")


def test_a_missing_split_is_one_sentence(tmp_path: Path) -> None:
    save(tmp_path / "data", "train", TRAIN, TRAIN_LABELS)
    with pytest.raises(ValueError, match=r"\(Unknown split .validation.*task\.root"):
        small(tmp_path / "data")


def test_no_connection_is_one_quick_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    start = time.process_time()
    with pytest.raises(ValueError, match=r"cannot be loaded \(.*\).*set task\.root to") as caught:
        ImageNetTask()
    assert time.process_time() - start < 5
    assert "imagenet-1k-256x256" in str(caught.value)
    assert "\n" not in str(caught.value)
