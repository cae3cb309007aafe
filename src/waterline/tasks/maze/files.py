"""Mazes from files in the format of the papers' data."""

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.walk import judge_walk

_KEYS = "'sequence' (or 'reward_model' with 'ground_truth')"

# What stands in some rows of a file, in the order that they are asked for.
Values = Callable[[Sequence[int]], Iterable[Any]]


class MazeFile:
    """A .jsonl or .parquet file with the full sequence of one maze in each of its ``rows``.

    Raises ValueError when it cannot be read as such.
    """

    def __init__(self, path: Path) -> None:
        kinds = {".jsonl": _json_lines, ".parquet": _parquet}
        if path.suffix not in kinds or not path.is_file():
            raise ValueError(f"There are no mazes at {path}; give a .jsonl or .parquet file.")
        self.path = path
        try:
            self.rows, self._values = kinds[path.suffix](path)
        except OSError as error:  # ArrowInvalid, of a file that is no table, is a ValueError
            raise ValueError(f"{path} cannot be read ({error.strerror or error}).") from None

    def read(self, rows: Sequence[int]) -> Iterator[str]:
        """The sequences of ``rows``; raises ValueError for a row without one."""
        values = iter(self._values(rows))
        for row in rows:
            try:
                value = next(values)
            except ValueError:
                raise ValueError(
                    f"{self.where(row)} is not JSON; each line needs one JSON object."
                ) from None
            found = None
            if isinstance(value, dict):
                found = value.get("sequence")
                if found is None and isinstance(value.get("reward_model"), dict):
                    found = value["reward_model"].get("ground_truth")
            if not isinstance(found, str):
                raise ValueError(f"{self.where(row)} has no text under {_KEYS}; add it there.")
            yield found

    def where(self, row: int) -> str:
        """How an error names ``row``."""
        return f"Row {row + 1} of {self.path}"


def _json_lines(path: Path) -> tuple[int, Values]:
    """One JSON object a line; blank lines are skipped."""
    places, place = [], 0
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                places.append(place)
            place += len(line)

    # Only the places are kept: a million mazes are gigabytes.
    def values(rows: Sequence[int]) -> Iterator[Any]:
        with path.open("rb") as file:
            for row in rows:
                file.seek(places[row])
                yield json.loads(file.readline())

    return len(places), values


def _parquet(path: Path) -> tuple[int, Values]:
    """A table with the column ``sequence``, or ``reward_model`` with ``ground_truth``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
    except pa.ArrowInvalid:
        raise ValueError(f"{path} is no Parquet file; give a .jsonl or .parquet file.") from None
    columns = [name for name in ("sequence", "reward_model") if name in names][:1]
    if not columns:
        raise ValueError(f"{path} has no column {_KEYS}; give the mazes' full sequences there.")
    table = cache(lambda: pq.read_table(path, columns=columns))  # read with its first row
    return pq.read_metadata(path).num_rows, lambda rows: table().take(list(rows)).to_pylist()


def _locate(path: Path, split: str) -> Path:
    if not path.is_dir():
        return path
    found = [path / f"{split}{suffix}" for suffix in (".parquet", ".jsonl")]
    there = [file for file in found if file.is_file()]
    if len(there) == 1:
        return there[0]
    raise ValueError(
        f"The folder {path} has {'both' if there else 'neither'} {found[0].name}"
        f" {'and' if there else 'nor'} {found[1].name};"
        f" {'remove' if there else 'add'} one of them or set the size of {split} to 0."
    )


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
        files = {place: MazeFile(place) for place in dict.fromkeys(places.values())}
        self._files = {split: files[place] for split, place in places.items()}
        self._free = {file: list(range(file.rows)) for file in files.values()}
        rows = {file: file.rows for file in files.values()}
        for split, file in self._files.items():
            _require_rows(split, counts[split], file, rows[file])
            rows[file] -= counts[split]

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the bytes of the files that the splits are read from."""
        whole = hashlib.sha256()
        for split, file in self._files.items():
            with file.path.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            whole.update(f"{split} {digest}\n".encode())
        return whole.hexdigest()[:12]

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
