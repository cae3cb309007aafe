"""``metrics.jsonl``: one JSON row a step, appended, readable at any moment."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waterline.runs.atomic import atomic_write

Row = dict[str, Any]


class MetricsLog:
    """The rows of one run, in strictly increasing order of their ``step``.

    Opening the log drops a last line that a killed process wrote only in part. A row is handed to
    the operating system before :meth:`append` returns, so it outlives the process; :meth:`sync`
    makes it outlive the machine, and belongs before each checkpoint.

    NaN and infinities, which JSON does not know, are written as null. The log has one writer: the
    process that holds the lock of the run folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._drop_half_written_line()
        rows = read_metrics(self.path)
        self.last_step: int | None = rows[-1]["step"] if rows else None
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row.

        Raises:
            ValueError: The row has no integer ``step``, or one that is not beyond the last.
        """
        step = row.get("step")
        if not isinstance(step, int) or isinstance(step, bool):
            raise ValueError(f"A row of {self.path} needs an integer 'step', not {step!r}.")
        if self.last_step is not None and step <= self.last_step:
            raise ValueError(
                f"{self.path} already holds step {self.last_step}, so step {step} cannot be "
                "appended: log each step once, and call truncate_after on resume."
            )
        # One write call a row: what a kill cuts off is the end of the last line and no more.
        rest = _encode(row)
        try:
            while rest:  # a disk that is all but full takes a part
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            error.filename = str(self.path)
            raise
        self.last_step = step

    def truncate_after(self, step: int) -> int:
        """Keep the rows up to ``step``, the checkpoint's, and move the later ones elsewhere.

        They go to ``metrics.<attempt>.jsonl``, attempts counting from 1.

        Returns:
            The number of rows moved.
        """
        rows = read_metrics(self.path)
        kept = [row for row in rows if row["step"] <= step]
        moved = b"".join(_encode(row) for row in rows[len(kept) :])
        if moved:
            attempt = 1
            while (aside := self.path.with_suffix(f".{attempt}{self.path.suffix}")).exists():
                # A process killed between the two writes below has set these rows aside already.
                if aside.read_bytes() == moved:
                    break
                attempt += 1
            atomic_write(aside, moved)
            self._file.close()
            atomic_write(self.path, b"".join(_encode(row) for row in kept))
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115
        self.last_step = kept[-1]["step"] if kept else None
        return len(rows) - len(kept)

    def sync(self) -> None:
        """Force every row to the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; rows can no longer be appended."""
        self._file.close()

    def _drop_half_written_line(self) -> None:
        if self.path.exists():
            whole = self.path.read_bytes().rfind(b"\n") + 1
            if whole < self.path.stat().st_size:
                os.truncate(self.path, whole)


def read_metrics(path: str | os.PathLike[str]) -> list[Row]:
    """The rows of a log, also of one that is being written; none when the file is missing.

    Raises:
        ValueError: A line other than an unfinished last one is not a JSON object.
    """
    file = Path(path)
    if not file.exists():
        return []
    lines = file.read_bytes().split(b"\n")[:-1]
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise ValueError(f"Line {number} of {file} is not a JSON object: fix or remove it.")
        rows.append(row)
    return rows


def _encode(row: Mapping[str, Any]) -> bytes:
    plain = {key: _plain(value) for key, value in row.items()}
    return json.dumps(plain, allow_nan=False).encode() + b"\n"


def _plain(value: Any) -> Any:
    # Scalars of NumPy and torch both answer to item().
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
