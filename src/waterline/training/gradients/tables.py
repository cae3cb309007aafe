"""The tables of a comparison of gradients, which grow by a checkpoint at a time."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd

from waterline.runs import BadInput, atomic_write

Row = dict[str, Any]
_NAMES = ("cosines", "fidelity")


class GradientTables:
    """``cosines.parquet`` and ``fidelity.parquet``, and ``settings.json`` that says what of.

    The note of what is done is written after the tables, so that rows of a checkpoint that it does
    not name are left from a kill and are made again.

    Args:
        folder: of the comparison. asked: what is compared, as plain data.

    Raises:
        BadInput: The folder holds a comparison of something else.
    """

    def __init__(self, folder: Path, asked: dict[str, Any]) -> None:
        self.folder, self.asked = folder, asked
        self.note = folder / "settings.json"
        self.rows: dict[str, list[Row]] = {name: [] for name in _NAMES}
        self.done: list[int] = []
        if not self.note.exists():
            return
        noted = json.loads(self.note.read_text())
        self.done = noted.pop("done")
        if noted != asked:
            raise BadInput(
                f"{folder} holds a comparison with other settings: ask for the same methods, n0, "
                "checkpoints, batches and resamplings, or move that folder away."
            )
        for name in _NAMES:
            table = pd.read_parquet(folder / f"{name}.parquet")
            kept = table[table["checkpoint"].isin(self.done)].to_dict("records")
            self.rows[name] = [{str(key): value for key, value in row.items()} for row in kept]

    def add(self, cosines: list[Row], fidelity: list[Row]) -> None:
        """Rows of the checkpoint at hand."""
        self.rows["cosines"] += cosines
        self.rows["fidelity"] += fidelity

    def close(self, checkpoint: int) -> None:
        """Writes what there is: the checkpoint is done."""
        self.folder.mkdir(exist_ok=True)
        for name, rows in self.rows.items():
            sink = io.BytesIO()
            pd.DataFrame(rows).to_parquet(sink, index=False)
            atomic_write(self.folder / f"{name}.parquet", sink.getvalue())
        self.done.append(checkpoint)
        atomic_write(self.note, json.dumps(self.asked | {"done": self.done}, indent=2) + "\n")
