"""Every maze of a small size."""

from collections.abc import Iterator

from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.prim import rooms
from waterline.tasks.maze.vocabulary import GOAL, PATH, START, WALL


def all_mazes(size: int) -> Iterator[Grid]:
    """Yield each maze of an odd ``size`` ≥ 5 once, in a fixed order.

    Passages are decided one by one: one that would close a cycle stays shut, one without which the
    rooms could no longer all be joined is opened, and of the others both choices are followed, so
    that no branch ends without a maze. There are ``count_mazes(size)``; 9 takes seconds, 11 days.

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
