"""Maze files in the format of the papers' data."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
    def read(self, rows: Sequence[int]) -> list[str]:
        """The sequences of ``rows``; raises ValueError for a row without one."""

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

    def read(self, rows: Sequence[int]) -> list[str]:
        """The sequences of ``rows``; raises ValueError for a row without one."""
        sequences = []
        with self.path.open("rb") as file:
            for row in rows:
                file.seek(self._places[row])
                try:
                    value = json.loads(file.readline())
                except ValueError:
                    raise ValueError(
                        f"{self.where(row)} is not JSON; each line needs one JSON object."
                    ) from None
                sequences.append(_sequence(value, self.where(row)))
        return sequences


class Parquet(MazeFile):
    """A Parquet table with the column ``sequence``, or ``reward_model`` with ``ground_truth``."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        super().__init__(path)
        names = set(pq.read_schema(path).names)
        columns = [name for name in ("sequence", "reward_model") if name in names][:1]
        if not columns:
            raise ValueError(f"{path} has no column {_KEYS}; give the mazes' full sequences there.")
        self._table = pq.read_table(path, columns=columns)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def read(self, rows: Sequence[int]) -> list[str]:
        """The sequences of ``rows``; raises ValueError for a row without one."""
        values = self._table.take(list(rows)).to_pylist() if rows else []
        return [_sequence(value, self.where(row)) for row, value in zip(rows, values, strict=True)]


def open_maze_file(path: Path) -> MazeFile:
    """Open ``path`` (.jsonl or .parquet); raises ValueError when it cannot be read as such."""
    kinds: dict[str, type[MazeFile]] = {".jsonl": JsonLines, ".parquet": Parquet}
    if path.suffix not in kinds or not path.is_file():
        raise ValueError(f"There are no mazes at {path}; give a .jsonl or .parquet file.")
    return kinds[path.suffix](path)
