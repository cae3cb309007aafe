"""Ending runs before their time: a stop that the process outlives, and SIGKILL from outside."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from training.tiny import ROOT
from waterline.training.keeper import RunKeeper

TIMEOUT = 3600  # seconds; other work may share the cores


class Stopped(BaseException):
    """A kill that the process outlives; nothing but a kill may look like it."""


@contextmanager
def stopped_at(monkeypatch, step: int, late: bool) -> Iterator[None]:
    """The run inside is stopped at a step, before or after what is written for it."""
    written = RunKeeper.on_train_batch_end

    def stops(self, trainer, stage, *rest):
        if stage.done == step and not late:
            raise Stopped
        written(self, trainer, stage, *rest)
        if stage.done == step:
            raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(RunKeeper, "on_train_batch_end", stops)
        with pytest.raises(Stopped):
            yield


def start(results: Path, settings: Sequence[str]) -> subprocess.Popen:
    """``experiments/train.py`` in a process of its own."""
    command = [sys.executable, "experiments/train.py", *settings, f"paths.results={results}"]
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests")))
    env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(process: subprocess.Popen) -> str:
    """What a process that must succeed has printed."""
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, output
    return output


def kill_when(process: subprocess.Popen, happened: Callable[[], bool]) -> bool:
    """Sends SIGKILL as soon as ``happened()``; whether the process was still running."""
    while process.poll() is None:
        if happened():
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.0005)
    return False


def moments(
    results: Path, rng: random.Random, evaluation: str, longest: float
) -> Iterator[Callable[[], Callable[[], bool]]]:
    """Moments of one kill each: while certain files are written, and at random.

    ``evaluation`` names the file of an evaluation; ``longest`` is the most seconds of a wait.
    """

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
        begun, wait, seen = changes(name), rng.uniform(0, longest), []

        def happened():
            if not seen and begun():
                seen.append(time.monotonic())
            return bool(seen) and time.monotonic() - seen[0] > wait

        return happened

    yield lambda: after("metrics.jsonl")
    yield lambda: partial("checkpoints")
    yield lambda: partial("eval")
    yield lambda: changes(evaluation)
    yield lambda: after("status.json")
    yield lambda: partial("allocation")
    yield lambda: after(evaluation)
    yield lambda: after("last.pt")


def run_with_kills(
    results: Path,
    settings: Sequence[str],
    seed: int,
    evaluation: str,
    longest: float,
    most: int = 8,
) -> int:
    """Runs to the end through kills at ``most`` moments, in a random order; how many there were."""
    rng = random.Random(seed)
    plan = list(moments(results, rng, evaluation, longest))
    rng.shuffle(plan)
    killed = 0
    for moment in plan[:most]:
        process = start(results, settings)
        alive = kill_when(process, moment())
        killed += alive
        if not alive:
            assert process.returncode == 0, process.stdout.read()
            break
    finish(start(results, settings))
    return killed
