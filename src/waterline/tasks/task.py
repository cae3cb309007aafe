"""What the rest of the line asks of a task whose responses are sequences of tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


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


class Tokenizer(Protocol):
    """Text to token ids and back: what this package uses of a Hugging Face tokenizer."""

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``."""

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """The text of ``token_ids``."""


class Task(Protocol):
    """Prompts in four disjoint splits.

    A response ends with the first of ``stop_tokens`` or after ``max_response`` tokens.

    Attributes:
        has_likelihood: Whether the success probability of a prompt is known exactly, without
            sampling. Never so for sequences; see ``ImageTask`` for one that has it.
        answers: The kind of the prompts' answers, which says what verifier can judge by them; a
            task may leave it out.

    A task whose prompts depend on files has a ``fingerprint`` besides, a short digest of them. A
    run records it and refuses to go on with other files. One whose answers come from files has
    ``source_of(prompt id)``, where a row stands, and all its answers are then checked at the start;
    ``notices()`` gives sentences for the log of a run.
    """

    has_likelihood: ClassVar[bool]
    stop_tokens: tuple[int, ...]
    max_response: int

    @property
    def splits(self) -> Mapping[str, Sequence[Prompt]]:
        """The prompts of ``sft``, ``train``, ``dev`` and ``test``; a split may be empty."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Encodes prompts and decodes responses."""


class LazyPrompts(Sequence[Prompt]):
    """``count`` prompts that are made when one is first read; their number is known before.

    ``make`` is called at every reading and must give the same list each time.
    """

    def __init__(self, count: int, make: Callable[[], list[Prompt]]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:  # a prompt for a number, a list for a slice
        return self._make()[index]


def require_whole_batches(prompts: int, batch: int) -> None:
    """Raise ValueError unless ``prompts`` training prompts are one or more batches of ``batch``.

    A last, smaller batch would have to be dropped, and its prompts would remain unseen in the first
    epoch; one unseen prompt makes the counts of a whole batch uniform.
    """
    if batch < 1:
        raise ValueError(f"A batch has {batch} prompts, but needs at least 1.")
    if prompts < batch or prompts % batch:
        nearest = max(batch, prompts // batch * batch)
        raise ValueError(
            f"The training set has {prompts} prompts, which is no multiple of the batch of {batch};"
            f" set its size to {nearest} or {nearest + batch}, or change the batch."
        )
