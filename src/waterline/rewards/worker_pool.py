"""Workers shared by threads."""

import atexit
import os
import threading

from waterline.rewards.worker import Worker, WorkerFailed


class WorkerPool:
    """Up to ``size`` workers, started when they are first needed and reused.

    ``ask`` may be called from any thread. An answer takes ``seconds`` at most; it is the worker
    that keeps this limit, and one that fails is replaced. In a forked child the pool starts afresh.
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
            for _ in range(2):
                worker = self._take()
                try:
                    verdict = worker.ask(gold, answer, self.seconds)
                except WorkerFailed:
                    self._drop(worker)
                except BaseException:  # interrupted while the worker's answer is on its way
                    self._drop(worker)
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

    def _drop(self, worker: Worker) -> None:
        worker.kill()
        with self._lock:
            self._all.discard(worker)

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
