"""Mazes as a task."""

from collections.abc import Callable, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from annotated_types import Ge, Le

from waterline.runs.checks import as_bad_input
from waterline.runs.settings import Whole, checked
from waterline.tasks.maze.files import LoadedMazes
from waterline.tasks.maze.generate import generate_mazes, require_that_many_exist
from waterline.tasks.maze.grid import DONE, EOS, Grid
from waterline.tasks.maze.tokenizer import MazeTokenizer
from waterline.tasks.task import LazyPrompts, Prompt

# Ids stay below 2³¹. The order is that of the ids only; mazes are given out test first.
Count = Annotated[int, Ge(0), Le(500_000_000)]
_FIRST_ID = {"train": 0, "dev": 500_000_000, "test": 1_000_000_000, "sft": 1_500_000_000}


class MazeTask:
    """Find the way from START to GOAL through a maze, one move a token.

    ``size`` counts the cells along a side, walls included: odd, at least 5. ``sft``, ``train``,
    ``dev`` and ``test`` are numbers of mazes. No maze occurs twice, in one split or in two, and
    the sizes of ``sft`` and ``train`` do not change which mazes ``dev`` and ``test`` hold; nor does
    ``sft`` change ``train``. A split is made when one of its prompts is first read, after those
    that stand before it in test, dev, train, sft. ``max_response`` is in tokens. With ``path`` the
    mazes are read from a file or folder in the papers' format instead of being generated (see
    ``LoadedMazes``).

    Source: MaxRL, App. E.1; SERA, App. D.1.2. Raises ValueError for an impossible size and for more
    mazes than exist or than a file has rows; reading a split raises it for malformed rows.
    """

    has_likelihood: ClassVar[bool] = False
    answers: ClassVar[str] = "maze"
    stop_tokens: tuple[int, ...] = (DONE, EOS)

    @checked
    def __init__(
        self,
        size: Annotated[int, Ge(5), Le(999)] = 17,
        *,
        sft: Count,
        train: Count,
        dev: Count,
        test: Count,
        seed: int = 0,
        max_response: Whole = 180,
        path: str | Path | None = None,
    ) -> None:
        counts = {"test": test, "dev": dev, "train": train, "sft": sft}
        self.max_response = max_response
        self.tokenizer = MazeTokenizer()
        self._counts, self._made = counts, dict[str, list[Prompt]]()
        self._given: set[bytes] = set()  # the cells of the mazes in ``_made``
        self._take: Callable[[str, int, Set[bytes]], list[tuple[Grid, str]]]
        self._loaded: LoadedMazes | None = None
        if path is None:
            require_that_many_exist(size, counts)
            self._take = partial(generate_mazes, size, seed)
        else:
            self._loaded = LoadedMazes(Path(path).expanduser(), size, counts, seed)
            self._take = self._loaded.take
        self.splits: dict[str, Sequence[Prompt]] = {
            split: LazyPrompts(counts[split], partial(self._prompts, split)) for split in _FIRST_ID
        }

    @property
    def fingerprint(self) -> str | None:
        """A digest of the files that the mazes come from; None where they are generated."""
        return None if self._loaded is None else self._loaded.fingerprint

    def _prompts(self, split: str) -> list[Prompt]:
        # No maze stands twice, and test gets its mazes first: what stands before a split in
        # ``_counts`` is made before it. ``sft`` is last, since runs that start from a base do
        # not read it, and it is by far the largest.
        for name, count in self._counts.items():
            if split in self._made:
                break
            if name not in self._made:
                with as_bad_input():
                    mazes = self._take(name, count, self._given)
                self._given.update(grid.cells for grid, _ in mazes)
                self._made[name] = [
                    Prompt(i, grid.prompt_text(), grid.prompt_tokens(), grid.prompt_text() + way)
                    for i, (grid, way) in enumerate(mazes, _FIRST_ID[name])
                ]
        return self._made[split]

    def target(self, prompt: Prompt) -> tuple[int, ...]:
        """The demonstration that supervised training imitates: the moves, DONE and ``<eos>``."""
        return tuple(self.tokenizer.encode(prompt.answer[len(prompt.text) :]))
