"""Mazes from files in the format of the papers' data."""

import json
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Any

from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.walk import judge_walk

_KEYS = "'sequence' (or 'reward_model' with 'ground_truth')"


def _sequence(row: Any, where: str) -> str:
    if isinstance(row, dict):
        found = row.get("sequence")
        if found is None and isinstance(row.get("reward_model"), dict):
            found = row["reward_model"].get("ground_truth")
        if isinstance(found, str):
            return found
    raise ValueError(f"{where} has no text under {_KEYS}; give the maze's full sequence there.")


class MazeFile(ABC):
    """Rows of a file, each with the full sequence of one maze, readable in any order."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def values(self, rows: Sequence[int]) -> list[Any]:
        """What stands in ``rows``, unchecked."""

    def read(self, rows: Sequence[int]) -> list[str]:
        """The sequences of ``rows``; raises ValueError for a row without one."""
        pairs = zip(rows, self.values(rows), strict=True)
        return [_sequence(value, self.where(row)) for row, value in pairs]

    def where(self, row: int) -> str:
        """How an error names ``row``."""
        return f"Row {row + 1} of {self.path}"


class JsonLines(MazeFile):
    """One JSON object a line, its sequence under ``sequence``; blank lines are skipped."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._places = []
        with path.open("rb") as file:
            place = 0
            for line in file:
                if line.strip():
                    self._places.append(place)
                place += len(line)

    def __len__(self) -> int:
        return len(self._places)

    def values(self, rows: Sequence[int]) -> list[Any]:
        """The objects of ``rows``; raises ValueError for a line that is not JSON."""
        values = []
        with self.path.open("rb") as file:
            for row in rows:
                file.seek(self._places[row])
                try:
                    values.append(json.loads(file.readline()))
                except ValueError:
                    raise ValueError(
                        f"{self.where(row)} is not JSON; each line needs one JSON object."
                    ) from None
        return values


class Parquet(MazeFile):
    """A Parquet table with the column ``sequence``, or ``reward_model`` with ``ground_truth``."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        super().__init__(path)
        names = set(pq.read_schema(path).names)
        columns = [name for name in ("sequence", "reward_model") if name in names][:1]
        if not columns:
            raise ValueError(f"{path} has no column {_KEYS}; give the mazes' full sequences there.")
        self._rows = int(pq.read_metadata(path).num_rows)
        # A million mazes are gigabytes: they are read when the first of them is.
        self._table = cache(lambda: pq.read_table(path, columns=columns))

    def __len__(self) -> int:
        return self._rows

    def values(self, rows: Sequence[int]) -> list[Any]:
        """The rows as dictionaries."""
        return list(self._table().take(list(rows)).to_pylist())


def open_maze_file(path: Path) -> MazeFile:
    """Open ``path`` (.jsonl or .parquet); raises ValueError when it cannot be read as such."""
    kinds: dict[str, type[MazeFile]] = {".jsonl": JsonLines, ".parquet": Parquet}
    if path.suffix not in kinds or not path.is_file():
        raise ValueError(f"There are no mazes at {path}; give a .jsonl or .parquet file.")
    return kinds[path.suffix](path)


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


class LoadedMazes:
    """Splits of mazes from files; which rows a split gets depends on the splits before it alone.

    ``path`` is one file from which all splits are cut, or a folder with ``<split>.parquet`` or
    ``<split>.jsonl``. Rows are counted at once, but read and checked by ``take``.

    Raises ValueError when a file is missing or has fewer rows than are asked of it.
    """

    def __init__(self, path: Path, size: int, counts: Mapping[str, int], seed: int) -> None:
        self.size, self.seed = size, seed
        places = {split: _locate(path, split) for split, count in counts.items() if count}
        files = {place: open_maze_file(place) for place in dict.fromkeys(places.values())}
        self._files = {split: files[place] for split, place in places.items()}
        self._free = {file: list(range(len(file))) for file in files.values()}
        rows = {file: len(file) for file in files.values()}
        for split, file in self._files.items():
            _require_rows(split, counts[split], file, rows[file])
            rows[file] -= counts[split]

    def take(self, split: str, count: int, given: Set[bytes]) -> list[tuple[Grid, str]]:
        """``count`` different mazes for a split, none with its cells among those ``given`` out.

        The rows are ``random.Random(seed).sample`` of those that no split took before, in the
        file's order; with seed 42 and a file of its own this is SERA's choice of 7,424 mazes. A row
        with a maze met before is replaced by another.

        Returns the grids, each with its demonstration " MOVE … MOVE DONE <eos>". Raises ValueError
        for a malformed row and when the distinct mazes do not suffice.
        """
        if count == 0:
            return []
        file, seen, rng = self._files[split], set(given), random.Random(self.seed)
        free = self._free[file]
        taken: dict[int, tuple[Grid, str]] = {}
        while len(taken) < count:
            _require_rows(split, count, file, len(taken) + len(free))
            rows = sorted(rng.sample(free, count - len(taken)))
            chosen = set(rows)
            free = [row for row in free if row not in chosen]
            for row, sequence in zip(rows, file.read(rows), strict=True):
                grid, demonstration = _check(sequence, self.size, file.where(row))
                if grid.cells not in seen:
                    seen.add(grid.cells)
                    taken[row] = (grid, demonstration)
        self._free[file] = free  # only now: a reading that was broken off can be repeated
        return [taken[row] for row in sorted(taken)]


def _require_rows(split: str, count: int, file: MazeFile, left: int) -> None:
    if count > left:
        raise ValueError(
            f"The split {split} asks for {count} mazes, but {file.path} has only {left} that no"
            " other split holds; ask for fewer or give more."
        )
