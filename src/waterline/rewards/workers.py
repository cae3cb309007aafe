"""Processes that run ``waterline.rewards.math_worker``, and a pool of them for threads."""

import atexit
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

_START_SECONDS = 120.0
_GRACE_SECONDS = 5.0
_PATIENCE = 10  # that of math_worker, whose libraries are not loaded here


class WorkerFailed(Exception):
    """The worker gave no answer."""


class Worker:
    """A running ``waterline.rewards.math_worker``.

    It is a program of its own rather than a fork or a spawn of ``__main__``: it works from a script
    without a main guard, a notebook or a thread, and inherits no lock. It ends when its parent
    does.
    """

    def __init__(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            # -P: a file in the current folder must not stand in for a library.
            [sys.executable, "-P", "-m", "waterline.rewards.math_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # an interrupt from the keyboard is the parent's to handle
        )
        self._ready = False

    @property
    def pid(self) -> int:
        """The process id; those of its children are in the group of the same number."""
        return self._process.pid

    def ask(self, gold: str, answer: str, seconds: float) -> str:
        """The verdict on ``answer``: ``timeout`` after ``seconds`` of processor time.

        Starting up does not count.

        Raises WorkerFailed when there is none; the worker is of no more use then: ``kill`` it.
        """
        if not self._ready:
            self._receive(_START_SECONDS)
            self._ready = True
        assert self._process.stdin is not None
        request = {"gold": gold, "answer": answer, "seconds": seconds}
        try:
            self._process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise WorkerFailed from None
        return str(self._receive(_PATIENCE * seconds + _GRACE_SECONDS)["verdict"])

    def _receive(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            # A reply is one short line, written at once: where its beginning is, its end is too.
            if not selector.select(seconds) or not (line := self._process.stdout.readline()):
                raise WorkerFailed
        reply: dict[str, Any] = json.loads(line)
        return reply

    def kill(self) -> None:
        """End the program and its child at once."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # unsent bytes to a dead process
                    pipe.close()


class WorkerPool:
    """Up to ``size`` workers, started when they are first needed and reused.

    ``ask`` may be called from any thread. An answer takes ``seconds`` of processor time at most;
    it is the worker that keeps this limit, and one that fails is replaced. In a forked child the
    pool starts afresh.
    """

    def __init__(self, size: int, seconds: float = 2.0) -> None:
        self.size = size
        self.seconds = seconds
        self._reset()
        atexit.register(self.close)

    def _reset(self) -> None:
        self._owner = os.getpid()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._places = threading.BoundedSemaphore(self.size)
        self._lock = threading.Lock()

    def ask(self, gold: str, answer: str) -> str:
        """The verdict on ``answer``; ``error`` when two workers failed on it."""
        if os.getpid() != self._owner:
            self._reset()
        with self._places:
            # An idle worker may have died: only a second failure is the answer's own.
            for _ in range(2):
                worker = self._take()
                try:
                    verdict = worker.ask(gold, answer, self.seconds)
                except BaseException as error:
                    worker.kill()
                    with self._lock:
                        self._all.discard(worker)
                    # Else interrupted while the worker's answer is on its way.
                    if not isinstance(error, WorkerFailed):
                        raise
                else:
                    with self._lock:
                        self._idle.append(worker)
                    return verdict
        return "error"

    def _take(self) -> Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            worker = Worker()
            self._all.add(worker)
            return worker

    def close(self) -> None:
        """End all workers; a later ``ask`` starts new ones."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            workers = list(self._all)
            self._all.clear()
            self._idle.clear()
        for worker in workers:
            worker.kill()
