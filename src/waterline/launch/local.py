"""Jobs as processes of this machine, a few at a time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from waterline.launch.jobs import Failure, Job
from waterline.launch.watch import Watch
from waterline.runs.provenance import COMMAND, user_command

_POLL_SECONDS = 0.1


def run_local(
    jobs: Sequence[Job], watch: Watch, *, script: Path, logs: Path, workers: int, threads: int
) -> list[Failure]:
    """Runs ``python script`` with each job's overrides, ``workers`` at a time.

    Each process gets ``threads`` threads, so that a result does not depend on how busy the machine
    was, and writes into a file of its own in ``logs``. A failure stops only the jobs that need the
    one that failed. The first Ctrl-C is passed on once to what runs and nothing new is started; the
    second kills it.

    Raises:
        KeyboardInterrupt: After an interrupt, once every process has ended.
    """
    logs.mkdir(parents=True, exist_ok=True)
    waiting, running = list(jobs), dict[Job, tuple[subprocess.Popen[bytes], Path]]()
    failed: dict[Job, Failure] = {}
    with _interrupts() as interrupts:
        passed_on = 0
        while running or (waiting and not interrupts):
            if passed_on < len(interrupts):
                passed_on = len(interrupts)
                for process, _ in running.values():
                    _signal(process, signal.SIGINT if passed_on == 1 else signal.SIGKILL)
            if not interrupts and len(running) < workers and (job := _next(waiting, running)):
                waiting.remove(job)
                if job.needs in failed:
                    failed[job] = Failure(job, f"'{job.needs.name}' failed, which it needs")
                    watch.ended(job.name, failed[job].reason)
                else:
                    name = re.sub(r"[^A-Za-z0-9.-]+", "-", job.name)
                    log = logs / f"{jobs.index(job)}-{name}.log"
                    running[job] = _start([str(script), *job.overrides], log, threads), log
                continue
            for job, (process, log) in list(running.items()):
                if (code := process.poll()) is not None:
                    del running[job]
                    reason = None if code == 0 else "interrupted" if interrupts else _last_line(log)
                    if reason is not None:
                        failed[job] = Failure(job, reason, log)
                    watch.ended(job.name, reason)
            time.sleep(_POLL_SECONDS)
        if interrupts:
            raise KeyboardInterrupt
    return list(failed.values())


def _next(waiting: Sequence[Job], running: Mapping[Job, Any]) -> Job | None:
    """The first job whose need has ended, however it ended."""
    open_jobs = {*waiting, *running}
    return next((job for job in waiting if job.needs not in open_jobs), None)


def _start(arguments: Sequence[str], log: Path, threads: int) -> subprocess.Popen[bytes]:
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    with open(log, "wb") as output:
        # A session of its own: the terminal sends Ctrl-C to its whole foreground group, and a
        # child would get it a second time when we pass it on.
        return subprocess.Popen(
            [sys.executable, *arguments], env=os.environ | limits | {COMMAND: user_command()},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """To the process and its children, such as loaders, as the terminal would do it."""
    if process.poll() is None:
        os.killpg(process.pid, number)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The signals that ask to stop, in the order of their arrival, instead of an exception.

    An exception could arrive between the start of a process and its entry in a list.
    """
    caught: list[int] = []
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    # What was asked to be ignored, as under nohup, stays ignored.
    numbers = [n for n in numbers if signal.getsignal(n) is not signal.SIG_IGN]
    before = {n: signal.signal(n, lambda number, _: caught.append(number)) for n in numbers}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _last_line(log: Path) -> str:
    """The end of a job's output, from which its failure is understood."""
    return (log.read_text("utf-8", errors="replace").strip() or "no output").splitlines()[-1]
