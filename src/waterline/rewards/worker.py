"""The other end of ``waterline.rewards.math_worker``."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_START_SECONDS = 120.0
_GRACE_SECONDS = 5.0


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
        self._buffer = b""
        self._ready = False

    @property
    def pid(self) -> int:
        """The process id; those of its children are in the group of the same number."""
        return self._process.pid

    def ask(self, gold: str, answer: str, seconds: float) -> str:
        """The verdict on ``answer``: ``timeout`` after ``seconds``; starting up does not count.

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
        return str(self._receive(seconds + _GRACE_SECONDS)["verdict"])

    def _receive(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise WorkerFailed
                chunk = os.read(descriptor, 65_536)
                if not chunk:
                    raise WorkerFailed
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
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
