"""Which mazes of a size exist: their rooms, their number, and each of them."""

import math
from collections.abc import Iterator
from functools import lru_cache

from waterline.tasks.maze.grid import GOAL, PATH, START, WALL, Grid


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


@lru_cache(maxsize=64)
def count_mazes(size: int) -> float:
    """The number of different mazes of an odd ``size`` ≥ 5; exact up to 13, then to rounding.

    A maze is a spanning tree of the m × m grid of rooms, m = (size − 1)/2. By the matrix-tree
    theorem (Kirchhoff 1847) their number is ∏ λ / m² over the eigenvalues λ ≠ 0 of the graph's
    Laplacian, 4 − 2 cos(πi/m) − 2 cos(πj/m). 5: 4, 7: 192, 9: 100,352, 11: 557,568,000.
    """
    m = (size - 1) // 2
    along = [2 - 2 * math.cos(math.pi * i / m) for i in range(m)]  # of a path of m rooms
    eigenvalues = [a + b for a in along for b in along][1:]  # the first is 0
    return round(math.prod(eigenvalues) / m**2, 0)  # a float, which may be infinite


def all_mazes(size: int) -> Iterator[Grid]:
    """Yield each maze of an odd ``size`` ≥ 5 once, in a fixed order.

    Passages are decided one by one. One that would close a cycle remains shut, one without which
    the rooms could no longer all be joined is opened, and of the others both choices are followed:
    no branch ends without a maze. There are ``count_mazes(size)``; 9 takes seconds, 11 days.

    Raises ValueError for an even size or one below 5.
    """
    neighbours = rooms(size)
    names = {cell: i for i, cell in enumerate(c for c, n in enumerate(neighbours) if n)}
    passages = [(a, b) for a in names for b in neighbours[a] if b > a]
    masks = [1 << names[a] | 1 << names[b] for a, b in passages]
    everything = (1 << len(names)) - 1
    blank = bytearray([WALL]) * (size * size)
    for cell in names:
        blank[cell] = PATH
    blank[size + 1], blank[size * (size - 1) - 2] = START, GOAL

    def joined(masks: list[int]) -> bool:
        reached, grown = 0, 1
        while grown != reached:
            reached = grown
            for mask in masks:
                if mask & grown:
                    grown |= mask
        return grown == everything

    def decide(i: int, parts: list[int], opened: list[int]) -> Iterator[list[int]]:
        if len(parts) == 1:
            yield opened
            return
        touched = [part for part in parts if part & masks[i]]
        if len(touched) == 2:
            merged = [part for part in parts if not part & masks[i]] + [touched[0] | touched[1]]
            yield from decide(i + 1, merged, [*opened, i])
        if len(touched) == 1 or joined(parts + masks[i + 1 :]):
            yield from decide(i + 1, parts, opened)

    for opened in decide(0, [1 << i for i in range(len(names))], []):
        cells = bytearray(blank)
        for i in opened:
            a, b = passages[i]
            cells[(a + b) >> 1] = PATH
        yield Grid(size, bytes(cells))
