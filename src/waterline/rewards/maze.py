"""Whether a response solves its maze."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from waterline.rewards.verifier import Judgement, judgement
from waterline.tasks.maze.walk import judge_walk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def verify_maze(response: str, sequence: str) -> bool:
    """True when ``response`` walks from START to GOAL of the maze in ``sequence``.

    ``response`` has the generated tokens as text, ``sequence`` the maze's full text or its prompt,
    both space-joined. Special tokens are removed; up to the first DONE, which must be there, only
    moves may stand. Leaving the grid or entering a wall before the goal fails; reaching the goal at
    any time succeeds. See ``judge_walk``, which separates wrong walks from malformed ones.

    Source: the verifier of MaxRL's and SERA's maze experiments. Raises ValueError when ``sequence``
    holds no maze.
    """
    return judge_walk(response, sequence) == "correct"


class MazeVerifier:
    """Judges walks through mazes: see ``verify_maze``."""

    responses: ClassVar[str] = "sequences"
    answers: ClassVar[str] = "maze"

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[np.bool_]
    ) -> Judgement:
        """``answers`` are the mazes' full texts. A walk cut off before DONE is ``unparseable``."""
        # Whether it is complete need not be asked: a walk that was cut off has no DONE.
        return judgement([judge_walk(r, a) for r, a in zip(responses, answers, strict=True)])
