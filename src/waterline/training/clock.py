"""Where the seconds of a step go."""

from __future__ import annotations

import time


class Clock:
    """Adds the time since the last lap to a stage.

    Args:
        stages: the names that may be given to ``lap``.
    """

    def __init__(self, *stages: str) -> None:
        self.seconds = dict.fromkeys(stages, 0.0)
        self.last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """The time since the last lap was spent in ``stage``."""
        now = time.perf_counter()
        self.seconds[stage] += now - self.last
        self.last = now
