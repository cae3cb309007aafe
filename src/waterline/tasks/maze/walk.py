"""Whether a response walks through its maze."""

from functools import lru_cache

from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.vocabulary import MOVES, SPECIAL, WALL

_IGNORED = frozenset(SPECIAL)


@lru_cache(maxsize=32_768)
def _walled(sequence: str) -> tuple[bytes, int, int, dict[str, int]]:
    """Cells within an extra wall, start, goal, and the step of each move.

    One wall behind each row serves both its end and the next row's beginning.
    """
    grid = Grid.from_sequence(sequence)
    size, wall = grid.size, bytes([WALL])
    row_of_wall = wall * (size + 1)
    rows = [grid.cells[i : i + size] + wall for i in range(0, len(grid.cells), size)]
    start, goal = (i + i // size + size + 1 for i in (grid.start, grid.goal))
    steps = dict(zip(MOVES, (-size - 1, size + 1, -1, 1), strict=True))
    return b"".join([row_of_wall, *rows, row_of_wall]), start, goal, steps


def judge_walk(response: str, sequence: str) -> str:
    """``correct``, ``wrong`` or ``unparseable``: the verdict on a response to a maze.

    ``response`` has the generated words, ``sequence`` the maze's text, both space-joined. Special
    tokens are removed; the words before the first DONE must all be moves, else (or without a DONE)
    the response is unparseable. Words after DONE are ignored. The walk from START is wrong when it
    leaves the grid or enters a wall before the goal, or ends elsewhere; it is correct as soon as it
    reaches the goal, whatever moves follow. It may be longer than the shortest path and turn back.

    Raises ValueError when ``sequence`` holds no maze.
    """
    cells, place, goal, steps = _walled(sequence)
    words = response.split()
    if not _IGNORED.isdisjoint(words):
        words = [word for word in words if word not in _IGNORED]
    try:
        walk = [steps[word] for word in words[: words.index("DONE")]]
    except (ValueError, KeyError):
        return "unparseable"
    for step in walk:
        place += step
        if place == goal:
            return "correct"
        if cells[place] == WALL:
            return "wrong"
    return "wrong"
