"""Mazes by the randomised algorithm of Prim."""

import random
from functools import lru_cache

from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.vocabulary import GOAL, PATH, START, WALL


@lru_cache(maxsize=32)
def rooms(size: int) -> tuple[tuple[int, ...], ...]:
    """For each cell, the rooms two steps away from it; empty unless the cell is itself a room.

    Rooms are the cells at odd rows and columns: (size − 1)/2 along each side.

    Raises ValueError for an even size or one below 5.
    """
    if size < 5 or size % 2 == 0:
        raise ValueError(
            f"A maze has an odd size of at least 5, walls included, but size is {size};"
            f" take {max(5, size + 1)} instead."
        )
    return tuple(
        tuple(
            (row + dr) * size + column + dc
            for dr, dc in ((-2, 0), (2, 0), (0, -2), (0, 2))
            if 0 < row + dr < size and 0 < column + dc < size
        )
        if row % 2 and column % 2
        else ()
        for row in range(size)
        for column in range(size)
    )


def prim_maze(size: int, rng: random.Random) -> Grid:
    """Draw a maze whose passages are a spanning tree of the rooms.

    From the opened room (1, 1), a uniformly random room of the frontier is joined to a uniformly
    random one of its opened neighbours, until all rooms are open. Start is (1, 1), the goal
    (size − 2, size − 2). Between two rooms there is exactly one simple path.

    Raises ValueError for an even size or one below 5.
    """
    neighbours = rooms(size)
    uniform = rng.random
    cells = bytearray([WALL]) * (size * size)
    seen = bytearray(size * size)
    first = size + 1
    cells[first] = PATH
    frontier = list(neighbours[first])
    for room in (first, *frontier):
        seen[room] = 1
    while frontier:
        pick = int(uniform() * len(frontier))
        room = frontier[pick]
        frontier[pick] = frontier[-1]
        frontier.pop()
        opened = []
        for other in neighbours[room]:
            if cells[other] == PATH:
                opened.append(other)
            elif not seen[other]:
                seen[other] = 1
                frontier.append(other)
        other = opened[int(uniform() * len(opened))] if len(opened) > 1 else opened[0]
        cells[room] = PATH
        cells[(room + other) >> 1] = PATH  # the wall half-way between the two rooms
    cells[first] = START
    cells[size * (size - 1) - 2] = GOAL
    return Grid(size, bytes(cells))
