"""Two processes through Lightning against one."""

import os
import subprocess
import sys

import pandas as pd
import pytest
import torch

from training.tiny import ROOT, TINY, timeless
from waterline.runs import State, read_metrics
from waterline.runs.folder import RunFolder

# An epsilon as large as the gradients, so that Adam does not blow rounding up to steps of ±lr.
SETTINGS = ("experiment=maze/laptop", *TINY, "training.steps=8",
            "training.optimizer.eps=1e-3", "training.checkpoint_every=3")  # fmt: skip

TIMEOUT = 3600  # seconds; other work may share the cores


def run(results, base, *overrides, expect=0):
    method = () if any(o.startswith("method=") for o in overrides) else ("method=sera",)
    command = [sys.executable, "experiments/train.py", *SETTINGS, *method, f"base.path={base}",
               f"paths.results={results}", *overrides]  # fmt: skip
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done, RunFolder(next(results.rglob("config.yaml")).parent)


def counts(folder):
    return pd.read_parquet(folder.eval / "counts.parquet")


def allocation(folder):
    return pd.concat(pd.read_parquet(f) for f in sorted(folder.allocation.glob("*.parquet")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra", [(), ("training.update.minibatches=2", "training.update.epochs=2")]
)
def test_two_ranks_do_what_one_does(base, tmp_path, extra):
    _, one = run(tmp_path / "one", base, *extra)
    said, two = run(tmp_path / "two", base, "trainer.devices=2", *extra)
    assert two.state() is State.done
    assert said.stdout.count(": done") == 1, "rank 0 alone speaks"
    pd.testing.assert_frame_equal(counts(one), counts(two))
    pd.testing.assert_frame_equal(allocation(one), allocation(two))
    a, b = read_metrics(one.metrics), read_metrics(two.metrics)
    assert [row["step"] for row in b] == list(range(9))
    for x, y in zip(a, b, strict=True):
        assert timeless(x).keys() == timeless(y).keys()
        for key, value in timeless(x).items():
            # Rounding alone separates the engine's and the trainer's log-probabilities.
            atol = 1e-4 if key == "engine/logp_gap" else 1e-5
            assert y[key] == (value if value is None else pytest.approx(value, rel=1e-3, abs=atol))
    weights = [torch.load(f.checkpoints / "final.pt", weights_only=True) for f in (one, two)]
    for name, tensor in weights[0]["policy"].items():
        torch.testing.assert_close(weights[1]["policy"][name], tensor, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_a_rank_may_have_no_prompt(base, tmp_path):
    single = ("task.train=4", "training.batch=1", "training.steps=4", "evaluation.max_rows=8")
    _, one = run(tmp_path / "one", base, *single)
    _, two = run(tmp_path / "two", base, "trainer.devices=2", *single)
    pd.testing.assert_frame_equal(counts(one), counts(two))
    pd.testing.assert_frame_equal(allocation(one), allocation(two))


@pytest.mark.slow
def test_both_stages_in_one_command_and_a_restart_with_another_number_of_ranks(tmp_path):
    command = [sys.executable, "experiments/train.py", *SETTINGS, "method=sera",
               f"paths.results={tmp_path}", "supervised.steps=20"]  # fmt: skip
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    for devices in (2, 1):
        done = subprocess.run(
            [*command, f"trainer.devices={devices}"], cwd=ROOT, env=env, capture_output=True,
            text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(": done") == 1
    states = [RunFolder(f.parent).state() for f in tmp_path.rglob("config.yaml")]
    assert states == [State.done, State.done]


@pytest.mark.slow
def test_a_pilot_of_the_whole_budget_leaves_an_empty_round(base, tmp_path):
    pilot = ("method=sera_pilot", "allocation.m=8", "training.steps=3")
    _, one = run(tmp_path / "one", base, *pilot)
    _, two = run(tmp_path / "two", base, "trainer.devices=2", *pilot)
    pd.testing.assert_frame_equal(counts(one), counts(two))
    pd.testing.assert_frame_equal(allocation(one), allocation(two))
    assert set(allocation(one)["n"]) == {8}


@pytest.mark.slow
def test_a_policy_that_diverges_stops_both_ranks_with_one_sentence(base, tmp_path):
    done, folder = run(
        tmp_path, base, "trainer.devices=2", "training.optimizer.lr=1e30",
        "training.optimizer.grad_clip=null", expect=1,
    )  # fmt: skip
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert "not finite" in errors[0]
    assert "Traceback" not in done.stderr
    assert folder.state() is State.failed
