"""The five outcomes of verifying a response."""

from enum import StrEnum


class Verdict(StrEnum):
    """What a verifier says about a response; only ``correct`` is rewarded.

    ``wrong``: an answer was read and is not the gold one. ``unparseable``: no answer could be read,
    or reading it was refused. ``timeout``: comparing it took too much time or memory. ``error``:
    the verifier failed, or the gold answer cannot be read; a sign of bad data, not of a bad policy.
    """

    correct = "correct"
    wrong = "wrong"
    unparseable = "unparseable"
    timeout = "timeout"
    error = "error"

    @property
    def reward(self) -> float:
        """1.0 for ``correct``, else 0.0."""
        return float(self is Verdict.correct)
