"""Local jobs: a few at a time, one failure stops no other, Ctrl-C is passed on once."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from waterline.launch.jobs import Job
from waterline.launch.local import run_local
from waterline.launch.watch import Watch

# Writes what it was given, says when it works, and counts the interrupts.
SCRIPT = """
import os, signal, sys, time
from pathlib import Path
here = Path(__file__).parent
name, *rest = sys.argv[1:]
print(rest, os.environ["OMP_NUM_THREADS"])
if name == "bad":
    sys.exit("error: no such maze")
caught = []
signal.signal(signal.SIGINT, lambda *_: caught.append(1))
(here / f"{name}.started").write_text(str(os.getpid()))
end = time.monotonic() + float(rest[0].partition("=")[2] if rest[:1] else 0)
while time.monotonic() < end:
    time.sleep(0.02)
    if caught and name != "deaf":
        time.sleep(0.3)
        sys.exit(f"{len(caught)} interrupt")
"""
PARENT = """
import io, sys
from pathlib import Path
from rich.console import Console
from waterline.launch.jobs import Job
from waterline.launch.local import run_local
from waterline.launch.watch import Watch
here = Path(sys.argv[1])
jobs = [Job(name, (name, "seconds=60")) for name in sys.argv[2:]]
with Watch(Console(), "jobs", {}) as watch:
    run_local(jobs, watch, script=here / "script.py", logs=here, workers=2, threads=1)
"""


def run(folder: Path, jobs: list[Job], workers: int = 2) -> tuple[dict[str, str], str]:
    (folder / "script.py").write_text(SCRIPT)
    console = Console(file=io.StringIO(), width=80)
    with Watch(console, "Jobs", {job.name: None for job in jobs}) as watch:
        failed = run_local(
            jobs, watch, script=folder / "script.py", logs=folder / "logs", workers=workers,
            threads=3,
        )  # fmt: skip
    return {f.job.name: f"{f.reason} {f.log}" for f in failed}, console.file.getvalue()


def test_a_failure_stops_only_what_needs_it(tmp_path):
    bad = Job("bad", ("bad",))
    after_bad, good = Job("after bad", ("never",), needs=bad), Job("good", ("good",))
    after_good = Job("after good", ("last",), needs=good)
    failed, shown = run(tmp_path, [bad, after_bad, good, after_good])
    assert set(failed) == {"bad", "after bad"}
    assert failed["bad"].startswith("error: no such maze")
    assert Path(failed["bad"].split()[-1]).exists()
    assert "'bad' failed" in failed["after bad"]
    assert not (tmp_path / "never.started").exists()
    assert re.search(r"4/4 done at 0.\d min: after good", shown)
    assert "FAILED (error: no such maze) at" in shown


def test_arguments_reach_the_processes_unharmed(tmp_path):
    odd = ("task.path='/a b/ma,ze=(1)'", "note='größe \"x\" $HOME'", "list=[1,2]")
    failed, _ = run(tmp_path, [Job("odd", ("odd", "seconds=0", *odd))])
    assert failed == {}
    (log,) = (tmp_path / "logs").glob("*.log")
    assert log.read_text() == f"{['seconds=0', *odd]} 3\n"


def test_no_more_than_workers_run_at_a_time(tmp_path):
    began = time.monotonic()
    run(tmp_path, [Job(f"{i}", (f"{i}", "seconds=0.5")) for i in range(3)], workers=1)
    assert time.monotonic() - began > 1.5


def interrupted(folder: Path, names: list[str], times: int) -> tuple[subprocess.Popen, list[int]]:
    """A parent of jobs to which Ctrl-C was sent ``times``; the ids of its processes."""
    (folder / "script.py").write_text(SCRIPT)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder), *names],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    started = [folder / f"{name}.started" for name in names[:2]]
    deadline = time.monotonic() + 120
    while not all(file.exists() and file.read_text() for file in started):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for _ in range(times):
        parent.send_signal(signal.SIGINT)
        time.sleep(1)
    parent.communicate(timeout=60)
    return parent, [int(file.read_text()) for file in started]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_one_interrupt_reaches_each_process_once_and_nothing_new_starts(tmp_path):
    parent, pids = interrupted(tmp_path, ["one", "two", "three"], times=1)
    assert parent.returncode != 0
    assert not any(map(alive, pids))
    assert not (tmp_path / "three.started").exists()
    assert [f.read_text().splitlines()[-1] for f in tmp_path.glob("*.log")] == ["1 interrupt"] * 2


@pytest.mark.slow
def test_a_second_interrupt_leaves_no_orphan(tmp_path):
    parent, pids = interrupted(tmp_path, ["deaf"], times=2)
    assert parent.returncode != 0
    assert not any(map(alive, pids))
