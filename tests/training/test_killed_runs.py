"""Processes of experiments/train.py killed from outside, with the default checkpoint interval."""

import re
import signal
import time
from pathlib import Path

import pytest

from training.kills import TIMEOUT, finish, run_with_kills, start
from training.tiny import TINY, differences, record

pytestmark = pytest.mark.slow

# 60 steps are 15 epochs and pass two checkpoints; evaluations take several chunks.
SETTINGS = ("experiment=maze/laptop", "method=sera", *TINY, "training.steps=60",
            "evaluation.every=15", "evaluation.max_rows=16")  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    results = tmp_path_factory.mktemp("whole")
    finish(start(results, SETTINGS))
    return {path.parent.relative_to(results): record(path.parent)
            for path in results.rglob("config.yaml")}  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_killed_run_ends_with_the_bits_of_one_never_killed(whole, tmp_path, seed):
    killed = run_with_kills(tmp_path, SETTINGS, seed, "counts.parquet", longest=5)
    assert killed >= 3
    assert {p.parent.relative_to(tmp_path) for p in tmp_path.rglob("config.yaml")} == set(whole)
    for folder, expected in whole.items():
        assert differences(record(tmp_path / folder), expected) == []
        assert not list((tmp_path / folder).rglob(".*.partial"))


def test_sigterm_during_the_start_is_answered(tmp_path):
    process = start(tmp_path, SETTINGS)
    caught = re.compile(r"SigCgt:\s*(\w+)")
    while not int(caught.search(Path(f"/proc/{process.pid}/status").read_text())[1], 16) >> 14 & 1:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=120)
    assert (process.returncode, output) == (130, "interrupted: the same command continues\n")


def test_sigterm_leaves_a_run_that_says_preempted(tmp_path):
    process = start(tmp_path, SETTINGS)
    started = time.monotonic()
    while not list(tmp_path.rglob("sera/*/*/metrics.jsonl")):
        assert process.poll() is None
        assert time.monotonic() - started < TIMEOUT
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert output.splitlines()[-1] == "interrupted: the same command continues"
    assert "Traceback" not in output
    status = next(tmp_path.rglob("sera/*/*/status.json")).read_text()
    assert '"preempted"' in status
