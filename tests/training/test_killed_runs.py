"""Processes of experiments/train.py killed from outside, with the default checkpoint interval."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from training.tiny import ROOT, TINY, differences, record

pytestmark = pytest.mark.slow

# 60 steps are 15 epochs and pass two checkpoints; evaluations take several chunks.
SETTINGS = ("experiment=maze/laptop", "method=sera", *TINY, "training.steps=60",
            "evaluation.every=15", "evaluation.max_rows=16")  # fmt: skip

TIMEOUT = 3600  # seconds; other work may share the cores


def start(results):
    command = [sys.executable, "experiments/train.py", *SETTINGS, f"paths.results={results}"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(process):
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, output
    return output


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    results = tmp_path_factory.mktemp("whole")
    finish(start(results))
    return {path.parent.relative_to(results): record(path.parent)
            for path in results.rglob("config.yaml")}  # fmt: skip


def kill_when(process, happened):
    """Sends SIGKILL as soon as ``happened()``; whether the process was still running."""
    while process.poll() is None:
        if happened():
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.0005)
    return False


def moments(results, rng):
    """Moments of one kill each: while certain files are written, and at random."""

    def partial(folder):
        return lambda: any(results.rglob(f"{folder}/.*.partial"))

    def changes(name):
        before = {f: f.stat().st_mtime_ns for f in results.rglob(name)}

        def happened():
            try:
                return any(f.stat().st_mtime_ns != before.get(f) for f in results.rglob(name))
            except FileNotFoundError:
                return False

        return happened

    def after(name):
        begun, wait, seen = changes(name), rng.uniform(0, 5), []

        def happened():
            if not seen and begun():
                seen.append(time.monotonic())
            return bool(seen) and time.monotonic() - seen[0] > wait

        return happened

    yield lambda: after("metrics.jsonl")
    yield lambda: partial("checkpoints")
    yield lambda: partial("eval")
    yield lambda: changes("counts.parquet")
    yield lambda: after("status.json")
    yield lambda: partial("allocation")
    yield lambda: after("counts.parquet")
    yield lambda: after("last.pt")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_killed_run_ends_with_the_bits_of_one_never_killed(whole, tmp_path, seed):
    rng = random.Random(seed)
    plan = list(moments(tmp_path, rng))
    rng.shuffle(plan)
    killed = 0
    for moment in plan:
        process = start(tmp_path)
        alive = kill_when(process, moment())
        killed += alive
        if not alive:
            assert process.returncode == 0, process.stdout.read()
            break
    finish(start(tmp_path))
    assert killed >= 3
    assert {p.parent.relative_to(tmp_path) for p in tmp_path.rglob("config.yaml")} == set(whole)
    for folder, expected in whole.items():
        assert differences(record(tmp_path / folder), expected) == []
        assert not list((tmp_path / folder).rglob(".*.partial"))


def test_sigterm_leaves_a_run_that_says_preempted(tmp_path):
    process = start(tmp_path)
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
