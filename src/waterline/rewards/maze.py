"""Whether a response solves its maze."""

from waterline.tasks.maze.walk import judge_walk


def verify_maze(response: str, sequence: str) -> bool:
    """True when ``response`` walks from START to GOAL of the maze in ``sequence``.

    ``response`` has the generated tokens as text, ``sequence`` the maze's full text or its prompt,
    both space-joined. Special tokens are removed; up to the first DONE, which must be there, only
    moves may stand. Leaving the grid or entering a wall before the goal fails; reaching the goal at
    any time succeeds. See ``judge_walk``, which tells a wrong walk from a malformed one.

    Source: the verifier of MaxRL's and SERA's maze experiments. Raises ValueError when ``sequence``
    holds no maze.
    """
    return judge_walk(response, sequence) == "correct"
