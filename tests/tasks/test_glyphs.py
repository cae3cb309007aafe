import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from waterline.tasks.images.glyph_drawing import draw_glyphs
from waterline.tasks.images.glyphs import GlyphsTask
from waterline.tasks.images.image_task import Images, ImageTask

TASK = GlyphsTask(classes=12, train=600, dev=100, test=100)


@pytest.fixture(scope="module")
def everything() -> Images:
    return TASK.splits["train"].load(range(600), None)


@settings(max_examples=30)
@given(
    rows=st.lists(st.integers(0, 599), max_size=80),
    key=st.none() | st.integers(0, 2**63 - 1),
)
def test_an_image_is_the_same_in_every_batch(
    everything: Images, rows: list[int], key: int | None
) -> None:
    images = TASK.splits["train"].load(rows, key)
    assert images.pixels.shape == (len(rows), 1, 32, 32)
    assert images.pixels.dtype == torch.float32
    assert torch.equal(images.pixels, everything.pixels[rows])
    assert images.ids.tolist() == everything.ids[rows].tolist()
    assert images.labels.tolist() == everything.labels[rows].tolist()
    assert images.unreadable == ()


def test_one_by_one_and_on_several_threads() -> None:
    split = TASK.splits["test"]
    together = split.load(range(100), None).pixels
    alone = torch.cat([split.load([row], None).pixels for row in range(100)])
    assert torch.equal(together, alone)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert torch.equal(split.load(range(100), None).pixels, together)
    finally:
        torch.set_num_threads(threads)


def test_the_same_settings_give_the_same_images_and_other_seeds_others() -> None:
    sizes = {"classes": 12, "train": 30, "dev": 30, "test": 30}
    a, b, c = (GlyphsTask(**sizes, seed=seed) for seed in (3, 3, 4))
    for split in a.splits:
        x, y, z = (task.splits[split].load(range(30), None) for task in (a, b, c))
        assert torch.equal(x.pixels, y.pixels)
        assert not torch.equal(x.pixels, z.pixels)
    assert a.characters == b.characters != c.characters


def test_a_larger_split_begins_with_the_smaller_ones_images() -> None:
    larger = GlyphsTask(classes=12, train=700, dev=100, test=130)
    for split in TASK.splits:
        a, b = (task.splits[split].load(range(100), None) for task in (TASK, larger))
        assert torch.equal(a.pixels, b.pixels)
        assert a.ids.tolist() == b.ids.tolist()


def test_different_ids_differ() -> None:
    # images 0, 36, 72, … are of one class and face
    pixels = TASK.splits["train"].load(range(0, 600, 36), None).pixels.flatten(1).double()
    assert torch.pdist(pixels).min() > 5
    correlation = torch.corrcoef(pixels)
    assert (correlation - torch.eye(len(pixels))).max() < 0.95


def test_splits_share_neither_ids_nor_faces() -> None:
    task = GlyphsTask(classes=300, train=20_000, dev=2_000, test=4_000)
    assert list(task.splits) == ["train", "dev", "test"]
    ids = np.concatenate([split.ids for split in task.splits.values()])
    assert ids.dtype == np.int64
    assert len(np.unique(ids)) == len(ids) == 26_000
    assert ids.min() >= 0
    assert ids.max() < 2**31
    faces = [face for split in task.splits.values() for face in split.faces]
    assert len(set(faces)) == len(faces) == 5
    assert [len(split.faces) for split in task.splits.values()] == [3, 1, 1]


@settings(max_examples=20)
@given(classes=st.integers(2, 40), count=st.integers(0, 200))
def test_labels_are_in_range_and_balanced(classes: int, count: int) -> None:
    task = GlyphsTask(classes=classes, train=count, dev=count, test=0)
    for name in ("train", "dev"):
        split = task.splits[name]
        assert len(split) == len(split.ids) == count
        counts = np.bincount(split.labels, minlength=classes)
        assert len(counts) == classes
        assert counts.max() - counts.min() <= 1


def test_loaded_labels_are_the_splits_and_the_statistics_are_near_0_and_1() -> None:
    for split in TASK.splits.values():
        images = split.load(range(len(split)), None)
        assert images.labels.dtype == images.ids.dtype == np.int64
        assert images.labels.tolist() == split.labels.tolist()
        assert abs(float(images.pixels.mean())) < 0.2
        assert 0.7 < float(images.pixels.std()) < 1.3
    assert len(set(TASK.characters)) == TASK.classes


def test_every_face_of_training_shows_every_class_equally_often(monkeypatch) -> None:
    drawn = []

    def record(strokes, masks, *rest):
        drawn.append(masks)
        return draw_glyphs(strokes, masks, *rest)

    monkeypatch.setattr("waterline.tasks.images.glyphs.draw_glyphs", record)
    images = TASK.splits["train"].load(range(576), None)
    assert np.bincount(drawn[0], minlength=36).tolist() == [16] * 36
    assert (drawn[0] % 12).tolist() == images.labels.tolist()


def test_a_class_is_one_character_in_every_face() -> None:
    task = GlyphsTask(classes=12, train=1200, dev=1200, test=1200)
    train, dev, test = (
        split.load(range(1200), None).pixels.reshape(100, 12, -1).mean(dim=0).numpy()
        for split in task.splits.values()
    )
    for held_out in (dev, test):
        correlation = np.corrcoef(held_out, train)[:12, 12:]
        assert (correlation.argmax(axis=1) == np.arange(12)).sum() >= 10


def test_images_are_centred_and_seldom_cut() -> None:
    task = GlyphsTask(classes=500, train=2000, dev=0, test=0)
    mean = task.splits["train"].load(range(2000), None).pixels.mean(dim=(0, 1)).numpy()
    ink = mean - np.quantile(mean, 0.05)
    for axis in (0, 1):
        profile = ink.sum(axis=axis)
        assert abs((profile * np.arange(32)).sum() / profile.sum() - 15.5) < 1
    border = np.concatenate([ink[0], ink[-1], ink[:, 0], ink[:, -1]])
    assert border.mean() < 0.15 * ink[12:20, 12:20].mean()


def test_pickled_splits_and_loader_workers_give_the_same_images() -> None:
    split = TASK.splits["train"]
    copy = pickle.loads(pickle.dumps(split))
    assert torch.equal(copy.load(range(40), 1).pixels, split.load(range(40), 2).pixels)
    assert len(pickle.dumps(TASK)) < 50_000  # no masks


@pytest.mark.parametrize("size", [8, 31, 64])
def test_other_sizes(size: int) -> None:
    task = GlyphsTask(classes=5, train=20, dev=0, test=0, size=size)
    split = task.splits["train"]
    pixels = split.load(range(20), None).pixels
    assert pixels.shape == (20, 1, size, size)
    assert torch.equal(pixels[7:8], split.load([7], None).pixels)
    assert pixels.isfinite().all()


def test_rows_that_do_not_exist() -> None:
    with pytest.raises(IndexError):
        TASK.splits["dev"].load([0, 100], None)
    assert len(TASK.splits["dev"].load([], None).pixels) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classes": 1001}, r"classes=1001.*a whole number from 2 to 1000"),
        ({"classes": 1}, r"classes=1:"),
        ({"size": 7}, r"size=7.*from 8 to 256"),
        ({"size": 257}, r"size=257"),
        ({"train": -1}, r"train=-1"),
        ({"dev": 2**29 + 1}, r"dev=536870913.*from 0 to 536870912"),
        ({"test": -3}, r"test=-3"),
        ({"train": 2.5}, r"train=2.5.*a whole number"),
        ({"seed": "0"}, r"seed=0.*a whole number"),
    ],
)
def test_settings_out_of_range_are_one_sentence(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        GlyphsTask(**settings)
    assert "\n" not in str(caught.value)


def test_it_is_an_image_task() -> None:
    task: ImageTask = TASK
    assert (task.classes, task.has_likelihood) == (12, True)
