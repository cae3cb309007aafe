"""The tables of a comparison of gradients, which grow by a checkpoint at a time."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from waterline.runs import BadInput, atomic_write

Row = dict[str, Any]


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
        noted = (
            json.loads(self.note.read_text(encoding="utf-8"))
            if self.note.exists()
            else asked | {"done": []}
        )
        self.done: list[int] = noted.pop("done")
        if noted != asked:
            raise BadInput(
                f"{folder} holds a comparison with other settings: ask for the same methods, n0, "
                "checkpoints, batches and resamplings, or move that folder away."
            )

    def write(self, checkpoint: int, cosines: list[Row], fidelity: list[Row]) -> None:
        """Adds the rows of a checkpoint to the tables: it is done."""
        for name, rows in (("cosines", cosines), ("fidelity", fidelity)):
            file, table = self.folder / f"{name}.parquet", pd.DataFrame(rows)
            if self.done:
                before = pd.read_parquet(file)
                kept = before[before["checkpoint"].isin(self.done)]
                table = pd.concat([kept, table], ignore_index=True)
            atomic_write(file, partial(table.to_parquet, index=False))
        self.done.append(checkpoint)
        atomic_write(self.note, json.dumps(self.asked | {"done": self.done}, indent=2) + "\n")
