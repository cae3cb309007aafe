"""Walks through a maze: the verdict on one, and the shortest."""

from functools import lru_cache

from waterline.tasks.maze.grid import MOVES, SPECIAL, WALL, Grid

_IGNORED = frozenset(SPECIAL)


@lru_cache(maxsize=32_768)
def _walled(sequence: str) -> tuple[bytes, int, int, dict[str, int]]:
    """Cells within an extra wall, start, goal, and the step of each move.

    One wall after each row closes its end and the beginning of the next row.
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
    # A step over the rim ends in the extra wall: no bounds need be checked.
    for step in walk:
        place += step
        if place == goal:
            return "correct"
        if cells[place] == WALL:
            return "wrong"
    return "wrong"


def shortest_path(grid: Grid) -> tuple[str, ...]:
    """The moves of a shortest path from START to GOAL.

    Breadth-first, neighbours in the order UP, DOWN, LEFT, RIGHT; ties between paths of equal length
    go to the first one found. Raises ValueError when the goal cannot be reached.
    """
    size, cells, start, goal = grid.size, grid.cells, grid.start, grid.goal
    steps = (-size, size, -1, 1)
    came_by = {start: -1}
    queue = [start]
    for cell in queue:
        if cell == goal:
            break
        for move, step in enumerate(steps):
            there = cell + step
            if not 0 <= there < len(cells) or (move > 1 and there // size != cell // size):
                continue
            if cells[there] != WALL and there not in came_by:
                came_by[there] = move
                queue.append(there)
    else:
        raise ValueError("The maze's goal cannot be reached from its start; correct the maze.")
    moves = []
    while cell != start:
        moves.append(MOVES[came_by[cell]])
        cell -= steps[came_by[cell]]
    return tuple(reversed(moves))
