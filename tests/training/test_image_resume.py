"""Image runs that are stopped, killed or loaded by other processes end with the same bits."""

import pytest

from training.kills import finish, run_with_kills, start, stopped_at
from training.tiny import differences
from training.tiny_images import TINY_IMAGES, image_record, run_images, tiny_images
from waterline.runs import State
from waterline.training.run import train

# Estimates by history, of images of which one cannot be read: all that a run carries along.
CARRIED = ("success=beta", "+task.unreadable=[1009]", "training.checkpoint_every=2")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The record of a run that was never stopped."""
    return image_record(run_images(tmp_path_factory.mktemp("whole"), *CARRIED).root)


def test_a_run_stopped_at_every_step_ends_with_the_same_bits(whole, tmp_path, monkeypatch):
    configs = tiny_images(tmp_path, *CARRIED)
    for step in range(1, 8):
        with stopped_at(monkeypatch, step, late=step % 3 == 0):
            train(*configs)
    folder = train(*configs)
    assert folder.state() is State.done
    assert [row["step"] for row in whole["metrics"]] == list(range(8))  # over two epoch boundaries
    assert any(row["allocation/waterline"] for row in whole["metrics"][1:])
    assert whole["checkpoints"]["last.pt"]["success"]["known"].count(True) == 11
    assert whole["checkpoints"]["last.pt"]["unreadable"] == [1009]
    assert sum(row["n"] for row in whole["allocation"]) > 0
    assert len(whole["probabilities"]) == 4 * 6
    assert differences(image_record(folder.root), whole) == []
    assert list(folder.root.glob("metrics.*.jsonl")), "rows beyond a checkpoint are set aside"


def test_images_loaded_by_other_processes_are_the_same(whole, tmp_path):
    folder = run_images(tmp_path, *CARRIED, "trainer.workers=2")
    assert differences(image_record(folder.root), whole) == []


KILLED = {
    "oracle": ("method=sera",),
    "history": ("method=sera", "success=beta"),
    "cross-entropy": ("method=ce",),
    "pilot, by workers": ("method=sera_pilot", "allocation.m=2", "trainer.workers=2"),
    "a total that floats": ("method=dars_hw",),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KILLED)
def test_a_killed_run_ends_with_the_bits_of_one_never_killed(kind, tmp_path):
    settings = ("experiment=imagenet/laptop", *TINY_IMAGES, "training.steps=120",
                "training.checkpoint_every=10", "evaluation.every=15", *KILLED[kind])  # fmt: skip
    finish(start(tmp_path / "whole", settings))
    results = tmp_path / "killed"
    killed = run_with_kills(results, settings, len(kind), "probabilities.parquet", 0.3, most=4)
    assert killed >= 3
    (a,), (b,) = (list(r.rglob("config.yaml")) for r in (tmp_path / "whole", results))
    expected = image_record(a.parent)
    assert len(expected["metrics"]) == 121
    assert differences(image_record(b.parent), expected) == []
    assert not list(results.rglob(".*.partial"))
