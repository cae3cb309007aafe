"""Streams of mazes without repetition."""

import random
from collections.abc import Iterator

from waterline.tasks.maze.all_mazes import all_mazes
from waterline.tasks.maze.count import count_mazes
from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.prim import prim_maze

_LISTABLE = 200_000
_PATIENCE = 50


def distinct_mazes(size: int, rng: random.Random, seen: set[bytes]) -> Iterator[Grid]:
    """Yield mazes whose cells are not in ``seen``, adding each to it; ends when all were seen.

    The mazes are draws of Prim's algorithm. Where few mazes exist (sizes up to 9) and 50 draws
    running were all seen before, those left are yielded in uniformly random order instead, since
    waiting for the rarest would take millions of draws. What comes does not depend on how many are
    taken, so a longer split begins with the shorter one.
    """
    listable = count_mazes(size) <= _LISTABLE
    repeats = 0
    while not (listable and repeats >= _PATIENCE):
        grid = prim_maze(size, rng)
        if grid.cells in seen:
            repeats += 1
            continue
        repeats = 0
        seen.add(grid.cells)
        yield grid
    left = [grid for grid in all_mazes(size) if grid.cells not in seen]
    rng.shuffle(left)
    for grid in left:
        seen.add(grid.cells)
        yield grid
