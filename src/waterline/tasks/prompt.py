"""One prompt of a task."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with everything that sampling and verifying need.

    ``id`` is persistent: the same number means the same prompt over epochs, restarts and ranks, and
    no two prompts of a task share one, whatever their splits. ``answer`` is what the verifier
    compares a response with (a maze: its full sequence text; mathematics: the gold answer).
    """

    id: int
    text: str
    tokens: tuple[int, ...]
    answer: str
