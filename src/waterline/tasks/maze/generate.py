"""Mazes drawn at random, none of them twice."""

import random
from collections.abc import Iterator, Mapping, Set
from itertools import islice

from waterline.tasks.maze.all_mazes import all_mazes, count_mazes, rooms
from waterline.tasks.maze.grid import GOAL, PATH, START, WALL, Grid
from waterline.tasks.maze.walk import shortest_path

_LISTABLE = 200_000
_PATIENCE = 50


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


def distinct_mazes(size: int, rng: random.Random, given: Set[bytes]) -> Iterator[Grid]:
    """Yield each maze once whose cells are not among those ``given`` out.

    The mazes are draws of Prim's algorithm. Where few mazes exist (sizes up to 9) and 50 draws
    running were all seen before, those left are yielded in uniformly random order instead, since
    waiting for the rarest would take millions of draws. Which mazes come does not depend on how
    many are taken, so a longer split begins with the shorter one.
    """
    listable = count_mazes(size) <= _LISTABLE
    seen, repeats = set(given), 0
    while not (listable and repeats >= _PATIENCE):
        grid = prim_maze(size, rng)
        if grid.cells in seen:
            repeats += 1
            continue
        repeats = 0
        seen.add(grid.cells)
        yield grid
    # Only now: listing the mazes of size 9 takes seconds.
    left = [grid for grid in all_mazes(size) if grid.cells not in seen]
    rng.shuffle(left)
    yield from left


def require_that_many_exist(size: int, counts: Mapping[str, int]) -> None:
    """Raise ValueError for an even size, one below 5, and one with too few different mazes."""
    rooms(size)  # raises for a size that has no mazes
    total, exist = sum(counts.values()), count_mazes(size)
    if total > exist:
        asked = ", ".join(f"{split} {count}" for split, count in counts.items())
        raise ValueError(
            f"{total} distinct mazes are asked for ({asked}), but only {exist:.0f} exist of size"
            f" {size}×{size}; ask for fewer or take a larger size."
        )


def generate_mazes(
    size: int, seed: int, split: str, count: int, given: Set[bytes]
) -> list[tuple[Grid, str]]:
    """Draw ``count`` different mazes for a split, none with its cells among those ``given`` out.

    Each split has its own random stream: the splits before it can change which mazes it gets
    by their sizes alone, and a larger split begins with the smaller one.

    Returns the grids, each with its demonstration " MOVE … MOVE DONE <eos>".
    """
    grids = islice(distinct_mazes(size, random.Random(f"maze/{seed}/{split}"), given), count)
    return [(grid, " ".join(("", *shortest_path(grid), "DONE <eos>"))) for grid in grids]
