"""Mazes as a task."""

from collections.abc import Sequence
from pathlib import Path

from waterline.tasks.maze.generate import generate_mazes
from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.load import load_mazes
from waterline.tasks.maze.tokenizer import MazeTokenizer
from waterline.tasks.maze.vocabulary import DONE, EOS
from waterline.tasks.maze.walk import judge_walk
from waterline.tasks.prompt import Prompt

# Ids stay below 2³¹. The order is that of the ids only; mazes are given out test first.
_FIRST_ID = {"train": 0, "dev": 500_000_000, "test": 1_000_000_000, "sft": 1_500_000_000}


def _prompt(number: int, grid: Grid, demonstration: str) -> Prompt:
    text = grid.prompt_text()
    return Prompt(number, text, grid.prompt_tokens(), text + demonstration)


class MazeTask:
    """Find the way from START to GOAL through a maze, one move a token.

    ``size`` counts the cells along a side, walls included: odd, at least 5. ``sft``, ``train``,
    ``dev`` and ``test`` are numbers of mazes. No maze occurs twice, in one split or in two, and
    the sizes of ``sft`` and ``train`` do not change which mazes ``dev`` and ``test`` hold; nor does
    ``sft`` change ``train``. ``max_response`` is in tokens. With ``path`` the mazes are read from a
    file or folder in the papers' format instead of being generated (see ``load_mazes``).

    Source: MaxRL, App. E.1; SERA, App. D.1.2. Raises ValueError for an impossible size, for more
    mazes than exist, and for malformed rows.
    """

    has_likelihood = False
    stop_tokens: tuple[int, ...] = (DONE, EOS)

    def __init__(
        self,
        size: int = 17,
        *,
        sft: int,
        train: int,
        dev: int,
        test: int,
        seed: int = 0,
        max_response: int = 180,
        path: str | Path | None = None,
    ) -> None:
        counts = {"test": test, "dev": dev, "train": train, "sft": sft}
        for split, count in counts.items():
            if not 0 <= count <= 500_000_000:
                raise ValueError(
                    f"The split {split} has {count} mazes; give a number from 0 to 500,000,000."
                )
        if max_response < 1:
            raise ValueError(f"max_response is {max_response} tokens; give at least 1.")
        self.size = size
        self.max_response = max_response
        self.tokenizer = MazeTokenizer()
        if path is None:
            mazes = generate_mazes(size, counts, seed)
        else:
            mazes = load_mazes(Path(path).expanduser(), size, counts, seed)
        self.splits: dict[str, list[Prompt]] = {
            split: [_prompt(first + i, *maze) for i, maze in enumerate(mazes[split])]
            for split, first in _FIRST_ID.items()
        }

    @property
    def max_prompt(self) -> int:
        """Tokens in every prompt of this size: 310 at size 17."""
        return self.size * (self.size + 1) + 4

    def target(self, prompt: Prompt) -> tuple[int, ...]:
        """The demonstration that supervised training imitates: the moves, DONE and ``<eos>``."""
        return tuple(self.tokenizer.encode(prompt.answer[len(prompt.text) :]))

    def verify(self, prompts: Sequence[Prompt], responses: Sequence[str]) -> list[str]:
        """``correct``, ``wrong`` or ``unparseable`` for each response to the prompt beside it."""
        return [
            judge_walk(response, prompt.answer)
            for prompt, response in zip(prompts, responses, strict=True)
        ]
