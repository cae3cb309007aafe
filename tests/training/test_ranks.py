"""Two processes through Lightning against one."""

import os
import subprocess
import sys

import pandas as pd
import pytest
import torch
from pytorch_lightning.utilities import rank_zero_only

from training.tiny import ROOT, TINY, timeless, tiny
from waterline.runs import FolderBusy, State, read_metrics
from waterline.runs.folder import RunFolder
from waterline.training.run import train

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


SURROUNDING = {
    "torchrun": {
        "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "0", "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "1",
        "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0",
    },
    "slurm": {
        "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_NTASKS": "2", "SLURM_NODEID": "0",
        "SLURM_JOB_NAME": "packed", "SLURM_JOB_ID": "7", "SLURM_NTASKS_PER_NODE": "2",
    },
    "mpi": {"OMPI_COMM_WORLD_RANK": "1", "PMI_RANK": "1", "PMI_SIZE": "2"},
    "lsf": {"LSB_JOBID": "7", "LSB_DJOB_RANKFILE": "/none", "JSM_NAMESPACE_RANK": "1"},
    "rank": {"RANK": "1"},
}  # fmt: skip


@pytest.mark.parametrize("name", SURROUNDING)
def test_one_process_is_a_whole_run_in_whatever_job_it_stands(base, tmp_path, monkeypatch, name):
    for variable, value in SURROUNDING[name].items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    one = tiny(tmp_path, "training.steps=1", "evaluation.every=0", f"base.path={base}")
    folder = train(*one)
    assert folder.state() is State.done
    assert [row["step"] for row in read_metrics(folder.metrics)] == [1]
    folder.set_state(State.preempted)
    with folder, pytest.raises(FolderBusy) as busy:
        train(*one)
    both = "for one run on all 2 processes of this job set trainer.devices" in str(busy.value)
    assert both is (name in ("torchrun", "slurm"))
