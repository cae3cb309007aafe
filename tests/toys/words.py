"""A bandit whose arms are words: a task and its verifier."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any, ClassVar

from numpy.typing import NDArray

from waterline.rewards import Judgement, judgement
from waterline.runs import permutation
from waterline.tasks import Prompt

ARMS = ("red", "blue", "green", "black", "white", "gold")


class WordTokenizer:
    """One token for each word."""

    words = ("<pad>", ".", *ARMS)
    pad_token_id, eos_token_id = 0, 1

    def encode(self, text: str) -> list[int]:
        return [self.words.index(word) for word in text.split()]

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return " ".join(self.words[i] for i in token_ids)


class WordBandit:
    """'red gold blue' names three arms, and the one that pays is the last: 'blue'."""

    has_likelihood: ClassVar[bool] = False
    stop_tokens: tuple[int, ...] = (1,)
    max_response = 1

    def __init__(self, train: int, dev: int, test: int, seed: int = 0) -> None:
        self.tokenizer = WordTokenizer()
        named = list(permutations(ARMS, 3))
        order = permutation(seed, 0, len(named)).tolist()
        sizes = {"train": train, "dev": dev, "test": test, "sft": 0}
        if train + dev + test > len(named):
            raise ValueError(f"There are {len(named)} prompts: lower train, dev or test.")
        self.splits = {
            name: [self._prompt(i, named[i]) for i in [order.pop() for _ in range(size)]]
            for name, size in sizes.items()
        }

    def _prompt(self, i: int, named: Sequence[str]) -> Prompt:
        text = " ".join(named)
        return Prompt(i, text, tuple(self.tokenizer.encode(text)), answer=named[-1])


class WordVerifier:
    """The response is the answer's word; reward 1 or 0."""

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[Any]
    ) -> Judgement:
        pairs = zip(answers, responses, strict=True)
        return judgement(["correct" if a == r.strip() else "wrong" for a, r in pairs])
