"""Splits from files of mazes."""

import random
from collections.abc import Mapping
from pathlib import Path

from waterline.tasks.maze.files import MazeFile, open_maze_file
from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.walk import judge_walk


def _locate(path: Path, split: str) -> Path:
    if path.is_dir():
        for suffix in (".parquet", ".jsonl"):
            if (path / f"{split}{suffix}").is_file():
                return path / f"{split}{suffix}"
        raise ValueError(
            f"The folder {path} has neither {split}.parquet nor {split}.jsonl;"
            f" add one of them or set the size of {split} to 0."
        )
    return path


def _check(sequence: str, size: int, where: str) -> tuple[Grid, str]:
    try:
        grid = Grid.from_sequence(sequence)
    except ValueError as error:
        raise ValueError(f"{where} is malformed: {error}") from None
    if grid.size != size:
        raise ValueError(
            f"{where} has a {grid.size}×{grid.size} maze, but the task's size is {size};"
            f" set the size to {grid.size} or take another file."
        )
    prompt = grid.prompt_text()
    if not sequence.startswith(prompt + " ") or not sequence.endswith(" DONE <eos>"):
        raise ValueError(
            f"{where} is malformed: a sequence is '<bos> GRID_START … GRID_END PATH_START',"
            " the moves and 'DONE <eos>', joined by single spaces."
        )
    if judge_walk(sequence[len(prompt) :], sequence) != "correct":
        raise ValueError(f"{where} has moves that do not lead to the goal; correct or remove it.")
    return grid, sequence[len(prompt) :]


def load_mazes(
    path: Path, size: int, counts: Mapping[str, int], seed: int
) -> dict[str, list[tuple[Grid, str]]]:
    """Take ``counts[split]`` different mazes for each split, in the order of ``counts``.

    ``path`` is one file from which all splits are cut, or a folder with ``<split>.parquet`` or
    ``<split>.jsonl``. The rows of a split are ``random.Random(seed).sample`` of those not taken
    before, in the file's order; with seed 42 and a file of its own this is SERA's choice of 7,424
    mazes. A row with a maze met before is replaced by another.

    Returns each split's grids, each with its demonstration " MOVE … MOVE DONE <eos>". Raises
    ValueError for a malformed row and when the distinct mazes do not suffice.
    """
    files: dict[Path, MazeFile] = {}
    free: dict[Path, list[int]] = {}
    seen: set[bytes] = set()
    splits: dict[str, list[tuple[Grid, str]]] = {}
    for split, count in counts.items():
        if count == 0:
            splits[split] = []
            continue
        place = _locate(path, split)
        if place not in files:
            files[place] = open_maze_file(place)
            free[place] = list(range(len(files[place])))
        rng = random.Random(seed)
        taken: dict[int, tuple[Grid, str]] = {}
        while len(taken) < count:
            missing = count - len(taken)
            if missing > len(free[place]):
                raise ValueError(
                    f"The split {split} asks for {count} mazes, but {place} has only"
                    f" {len(taken) + len(free[place])} that no other split holds;"
                    " ask for fewer or give more."
                )
            rows = sorted(rng.sample(free[place], missing))
            chosen = set(rows)
            free[place] = [row for row in free[place] if row not in chosen]
            for row, sequence in zip(rows, files[place].read(rows), strict=True):
                grid, demonstration = _check(sequence, size, files[place].where(row))
                if grid.cells not in seen:
                    seen.add(grid.cells)
                    taken[row] = (grid, demonstration)
        splits[split] = [taken[row] for row in sorted(taken)]
    return splits
