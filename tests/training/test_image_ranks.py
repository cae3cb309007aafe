"""Two processes that share the images of a batch against one, with BatchNorm frozen.

The loss is then a sum over images. What separates the runs is the order in which float32 numbers
are added: gradients and weights agree to a relative 1e-4, everything that is counted is equal.
"""

import pandas as pd
import pytest
import torch

from training.kills import finish, kill_when, start
from training.tiny import timeless
from training.tiny_images import TINY_IMAGES, TinyTask, allocations, probabilities
from waterline.runs import State, read_metrics
from waterline.runs.folder import RunFolder
from waterline.training.labels.batches import StepBatches

pytestmark = pytest.mark.slow

# Odd batches, of which the last of an epoch is a single image: the second rank then has none.
SETTINGS = (
    "experiment=imagenet/laptop", *TINY_IMAGES, "policy.frozen_batch_norm=true",
    "task.train=11", "training.batch=5", "training.steps=7", "training.diagnostics_every=1",
)  # fmt: skip


def lost():
    """An image of the second rank, in the first step, and all of that rank's in the second."""
    split = TinyTask(train=11).splits["train"]
    rows = StepBatches(split, 5, seed=0).rows
    return [int(i) for i in (split.ids[rows(0)[1]], *split.ids[rows(1)[1::2]])]


def run(results, *overrides):
    said = finish(start(results, (*SETTINGS, *overrides)))
    return said, RunFolder(next(results.rglob("config.yaml")).parent)


def close(x, y):
    if x is None or y is None:
        return x is y
    return y == pytest.approx(x, rel=1e-4, abs=1e-5)


CASES = {
    "oracle": ("method=sera",),
    "history and unreadable images": ("method=sera", "success=beta", "lost"),
    "pilot of the whole budget": ("method=sera_pilot", "allocation.m=4"),
    "cross-entropy and unreadable images": ("method=ce", "lost"),
    "a total that floats": ("method=dars_hw",),
}


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_do_what_one_does(case, tmp_path):
    extra = [f"+task.unreadable={lost()}" if o == "lost" else o for o in CASES[case]]
    _, one = run(tmp_path / "one", *extra)
    said, two = run(tmp_path / "two", "trainer.devices=2", *extra)
    assert two.state() is State.done
    assert said.count(": done") == 1, "rank 0 alone speaks"

    rows = [read_metrics(folder.metrics) for folder in (one, two)]
    assert [row["step"] for row in rows[1]] == list(range(8))
    for x, y in zip(*rows, strict=True):
        assert timeless(x).keys() == timeless(y).keys()
        differing = [k for k, value in timeless(x).items() if not close(value, y[k])]
        assert differing == []
        counted = ("groups/", "allocation/count", "reward/", "rollouts/", "data/", "grad/skipped")
        for key in timeless(x):
            if key.startswith(counted) and key != "groups/mixed_per_second":
                assert x[key] == y[key], key
    if "lost" in CASES[case]:
        assert rows[1][2]["data/unreadable"] == 3
        assert two.log.read_text().count("cannot be read and is left out") == 3
    if "method=ce" not in CASES[case]:
        a, b = (allocations(folder.root) for folder in (one, two))
        pd.testing.assert_frame_equal(a[["step", "prompt", "n"]], b[["step", "prompt", "n"]])
        pd.testing.assert_frame_equal(a, b, rtol=1e-5)
        single = a.groupby("step").size()
        assert 1 in single.tolist()
    a, b = (probabilities(folder.root) for folder in (one, two))
    pd.testing.assert_frame_equal(a.drop(columns="p"), b.drop(columns="p"))
    pd.testing.assert_frame_equal(a, b, rtol=1e-4)
    weights = [
        torch.load(folder.checkpoints / "final.pt", weights_only=True)["policy"]
        for folder in (one, two)
    ]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, rtol=1e-4, atol=1e-6)


def test_a_run_goes_on_with_another_number_of_ranks(tmp_path):
    """Killed on two ranks right after its first checkpoint, it ends on one."""
    process = start(tmp_path, (*SETTINGS, "method=sera", "trainer.devices=2",
                               "training.steps=40"))  # fmt: skip
    assert kill_when(process, lambda: any(tmp_path.rglob("last.pt")))
    said, folder = run(tmp_path, "method=sera", "training.steps=40")
    assert ": done" in said
    assert [row["step"] for row in read_metrics(folder.metrics)] == list(range(41))


def test_a_policy_that_diverges_stops_both_ranks_with_one_sentence(tmp_path):
    process = start(tmp_path, (*SETTINGS, "method=sera", "trainer.devices=2",
                               "training.optimizer.lr=1e30"))  # fmt: skip
    output, _ = process.communicate(timeout=3600)
    assert process.returncode == 2, output
    errors = [line for line in output.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert "no number" in errors[0] or "not finite" in errors[0]
    assert "Traceback" not in output
