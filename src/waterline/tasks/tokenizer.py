"""The part of a tokenizer that this package uses; Hugging Face tokenizers have it too."""

from collections.abc import Sequence
from typing import Protocol


class Tokenizer(Protocol):
    """Text to token ids and back."""

    @property
    def pad_token_id(self) -> int:
        """Fills batches up; never part of a response."""
        ...

    @property
    def eos_token_id(self) -> int:
        """Ends a text."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``."""
        ...

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """The text of ``token_ids``."""
        ...
