"""Killable workers shared by threads."""

import atexit
import os
import threading
from typing import Any

from waterline.rewards.worker import Worker, WorkerDied, WorkerTimeout


class WorkerPool:
    """Up to ``size`` workers, started when they are first needed and reused until they fail.

    ``ask`` may be called from any thread. A worker that exceeds ``seconds`` is killed and replaced;
    the others are left alone. In a forked child the pool starts afresh.
    """

    def __init__(self, size: int, seconds: float = 2.0) -> None:
        if size < 1 or not seconds > 0:
            raise ValueError(
                f"A pool of {size} workers with {seconds} seconds cannot verify anything;"
                " give at least one worker and a positive time."
            )
        self.size = size
        self.seconds = seconds
        self._reset()
        atexit.register(self.close)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._places = threading.BoundedSemaphore(self.size)
        self._lock = threading.Lock()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The worker's answer; raises WorkerTimeout, or WorkerDied when two workers ended on it."""
        if os.getpid() != self._pid:
            self._reset()
        with self._places:
            for attempt in (1, 2):
                worker = self._take()
                try:
                    answer = worker.ask(request, self.seconds)
                except WorkerDied:
                    by_limits = worker.died_of_limits()
                    self._drop(worker)
                    if by_limits:
                        raise WorkerTimeout from None
                    if attempt == 2:
                        raise
                except BaseException:
                    self._drop(worker)
                    raise
                else:
                    with self._lock:
                        self._idle.append(worker)
                    return answer
        raise AssertionError("unreachable")

    def _take(self) -> Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            worker = Worker()
            self._all.add(worker)
            return worker

    def _drop(self, worker: Worker) -> None:
        worker.kill()
        with self._lock:
            self._all.discard(worker)

    def close(self) -> None:
        """End all workers; a later ``ask`` starts new ones."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            workers = list(self._all)
            self._all.clear()
            self._idle.clear()
        for worker in workers:
            worker.kill()
