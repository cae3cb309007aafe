"""One child process that can be killed."""

import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_START_SECONDS = 120.0


class WorkerTimeout(Exception):
    """The worker did not answer within its time."""


class WorkerDied(Exception):
    """The worker ended without an answer."""


class Worker:
    """A ``waterline.rewards.math_worker`` and the pipe to it.

    It is an own program rather than a fork or a spawn of ``__main__``: it works from a script
    without a main guard, a notebook or a thread, and inherits no lock. It ends by itself when its
    parent does.
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
        """The child's process id."""
        return self._process.pid

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and wait for its answer; starting up does not count.

        Raises WorkerTimeout or WorkerDied; the worker is of no more use then: ``kill`` it.
        """
        if not self._ready:
            self._receive(_START_SECONDS)
            self._ready = True
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise WorkerDied from None
        return self._receive(seconds)

    def _receive(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise WorkerTimeout
                chunk = os.read(descriptor, 65_536)
                if not chunk:
                    raise WorkerDied
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def died_of_limits(self) -> bool:
        """Whether the kernel ended it for its processor time (or an uncaught lack of memory)."""
        code = self._process.wait(5)
        return code < 0

    def kill(self) -> None:
        """End the process at once and take it off the process table."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # unsent bytes to a dead process
                    pass
