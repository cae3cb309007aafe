"""Splits of generated mazes."""

import random
from collections.abc import Mapping
from itertools import islice

from waterline.tasks.maze.count import count_mazes
from waterline.tasks.maze.draw import distinct_mazes
from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.prim import rooms
from waterline.tasks.maze.shortest_path import shortest_path


def generate_mazes(
    size: int, counts: Mapping[str, int], seed: int
) -> dict[str, list[tuple[Grid, str]]]:
    """Draw ``counts[split]`` mazes for each split, in the order of ``counts``, all different.

    Each split has its own random stream and takes no maze of the splits before it: their sizes
    alone can change which mazes it gets, and a larger split begins with the smaller one.

    Returns each split's grids, each with its demonstration " MOVE … MOVE DONE <eos>". Raises
    ValueError for an even size or one below 5, and when more mazes are asked for than exist.
    """
    rooms(size)  # raises for a size that has no mazes
    total, exist = sum(counts.values()), count_mazes(size)
    if total > exist:
        asked = ", ".join(f"{split} {count}" for split, count in counts.items())
        raise ValueError(
            f"{total} distinct mazes are asked for ({asked}), but only {exist} exist of size"
            f" {size}×{size}; ask for fewer or take a larger size."
        )
    seen: set[bytes] = set()
    splits: dict[str, list[tuple[Grid, str]]] = {}
    for split, count in counts.items():
        grids = islice(distinct_mazes(size, random.Random(f"maze/{seed}/{split}"), seen), count)
        splits[split] = [
            (grid, " ".join(("", *shortest_path(grid), "DONE <eos>"))) for grid in grids
        ]
    return splits
