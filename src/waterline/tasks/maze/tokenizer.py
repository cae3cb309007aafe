"""One word of the maze language, one token."""

import re
from collections.abc import Sequence

from waterline.tasks.maze.grid import BOS, EOS, PAD, SPECIAL, TOKEN_IDS, UNK, VOCABULARY

# The special tokens are cut out first; the rest splits where words and punctuation meet.
_SPECIAL = "|".join(SPECIAL)
_WORDS = re.compile(rf"{_SPECIAL}|\w+|[^\w\s]+?(?={_SPECIAL})|[^\w\s]+")


class MazeTokenizer:
    """The word-level tokenizer of the maze language: 32 tokens, no merges, nothing added.

    ``encode`` maps unknown words to ``<unk>``; ``decode`` joins words by single spaces. It needs
    the standard library alone, and equals a Hugging Face tokenizer of ``tokenizers.WordLevel``.
    """

    pad_token_id = PAD
    bos_token_id = BOS
    eos_token_id = EOS
    unk_token_id = UNK

    def __len__(self) -> int:
        return len(VOCABULARY)

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``; no special token is added."""
        return [TOKEN_IDS.get(word, UNK) for word in _WORDS.findall(text)]

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """The words of ``token_ids`` joined by spaces; special are ``<pad> <bos> <eos> <unk>``."""
        first = len(SPECIAL) if skip_special_tokens else 0
        return " ".join(VOCABULARY[i] for i in token_ids if i >= first)
