"""What the rest of the line asks of a task."""

from collections.abc import Sequence
from typing import Protocol

from waterline.tasks.prompt import Prompt
from waterline.tasks.tokenizer import Tokenizer


class Task(Protocol):
    """Prompts in four disjoint splits, and a verdict for every response.

    ``splits`` has the keys ``sft``, ``train``, ``dev`` and ``test``. A response ends with the first
    of ``stop_tokens`` or after ``max_response`` tokens.
    """

    splits: dict[str, list[Prompt]]
    stop_tokens: tuple[int, ...]
    max_response: int

    @property
    def tokenizer(self) -> Tokenizer:
        """Encodes prompts and decodes responses."""
        ...

    def verify(self, prompts: Sequence[Prompt], responses: Sequence[str]) -> list[str]:
        """The verdict on each response to the prompt beside it, by the names of ``Verdict``."""
        ...
