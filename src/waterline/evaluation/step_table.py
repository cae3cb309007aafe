"""A parquet file with rows for a checkpoint, a split and a prompt."""

from __future__ import annotations

import io
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from waterline.runs import atomic_write

_KEY = {"step": "int64", "split": "str", "prompt": "int64"}


class StepTable:
    """Rows (step, split, prompt, …), each of which stands once.

    ``step`` is that of the checkpoint, 0 for the policy that training starts from. Writing a row
    again replaces it. Every write is atomic, so a reader or a restart sees whole chunks. A subclass
    names the further columns and their types in ``values``.
    """

    values: ClassVar[dict[str, str]]

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def types(self) -> dict[str, str]:
        """The columns in their order."""
        return {**_KEY, **self.values}

    def read(self) -> pd.DataFrame:
        """All rows; none when nothing was evaluated yet."""
        if not self.path.exists():
            return pd.DataFrame({name: pd.Series(dtype=t) for name, t in self.types.items()})
        return pd.read_parquet(self.path)

    def at(self, step: int, split: str) -> pd.DataFrame:
        """Rows of one checkpoint on one split, in order of prompts."""
        rows = self.read()
        chosen = rows[(rows["step"] == step) & (rows["split"] == split)]
        return chosen.sort_values("prompt").reset_index(drop=True)

    def add(self, new: pd.DataFrame) -> None:
        """Adds or replaces rows."""
        rows = pd.concat([self.read(), new.astype(self.types)], ignore_index=True)
        rows = rows.drop_duplicates(list(_KEY), keep="last")
        self._save(rows.sort_values(["split", "step", "prompt"], ignore_index=True))

    def truncate_after(self, step: int) -> None:
        """Drops rows of checkpoints beyond ``step``, which a resumed run will make again."""
        rows = self.read()
        if (rows["step"] > step).any():
            self._save(rows[rows["step"] <= step])

    def _save(self, rows: pd.DataFrame) -> None:
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pandas(rows.astype(self.types), preserve_index=False), sink)
        atomic_write(self.path, sink.getvalue())
