"""``eval/counts.parquet``: how many of n responses were correct, per checkpoint and prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray

from waterline.runs import BadInput, atomic_write

COLUMNS = ("step", "split", "prompt", "n", "c")
_TYPES = {"step": "int64", "split": "str", "prompt": "int64", "n": "int64", "c": "int64"}
Ints = NDArray[np.int64]


class CountsStore:
    """Counts (step, split, prompt, n, c): enough for any K and any interval.

    ``step`` is that of the checkpoint, 0 for the base policy. A row stands once; writing it again
    replaces it. Every write is atomic, so a reader or a restart sees whole chunks.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def read(self) -> pd.DataFrame:
        """All rows; none when nothing was evaluated yet."""
        if not self.path.exists():
            return pd.DataFrame({c: pd.Series(dtype=_TYPES[c]) for c in COLUMNS})
        return pd.read_parquet(self.path)

    def counts(self, step: int, split: str) -> pd.DataFrame:
        """Rows of one checkpoint on one split, in order of prompts."""
        rows = self.read()
        chosen = rows[(rows["step"] == step) & (rows["split"] == split)]
        return chosen.sort_values("prompt").reset_index(drop=True)

    def missing(self, step: int, split: str, prompts: list[int], n: int) -> list[int]:
        """The prompts that have no row with ``n`` responses yet, in the order given."""
        rows = self.counts(step, split)
        done = set(rows.loc[rows["n"] == n, "prompt"].tolist())
        return [p for p in prompts if p not in done]

    def use_sampling(self, split: str, sampling: dict[str, Any]) -> None:
        """Notes how ``split`` is sampled: temperature, top_p, top_k and seed.

        Raises:
            BadInput: The counts on this split were sampled differently.
        """
        file = self.path.with_name(f"{self.path.stem}-sampling.json")
        noted = json.loads(file.read_text()) if file.exists() else {}
        if noted.setdefault(split, sampling) != sampling:
            raise BadInput(
                f"{self.path} holds counts on {split} sampled with {noted[split]}, asked for "
                f"{sampling}: evaluate with the same settings, or move {self.path.parent} away."
            )
        self._note(file, noted)

    def _note(self, file: Path, noted: dict[str, Any]) -> None:
        atomic_write(file, json.dumps(noted, indent=2) + "\n")

    def write(self, step: int, split: str, prompt: Ints, n: Ints, c: Ints) -> None:
        """Adds or replaces rows."""
        new = pd.DataFrame({"step": step, "split": split, "prompt": prompt, "n": n, "c": c})
        rows = pd.concat([self.read(), new.astype(_TYPES)], ignore_index=True)
        rows = rows.drop_duplicates(["step", "split", "prompt"], keep="last")
        rows = rows.sort_values(["split", "step", "prompt"], ignore_index=True).astype(_TYPES)
        sink = _parquet(rows)
        atomic_write(self.path, sink)

    def truncate_after(self, step: int) -> None:
        """Drops rows of checkpoints beyond ``step``, which a resumed run will make again."""
        rows = self.read()
        if (rows["step"] > step).any():
            atomic_write(self.path, _parquet(rows[rows["step"] <= step]))


def _parquet(rows: pd.DataFrame) -> bytes:
    import io

    import pyarrow as pa

    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), sink)
    return sink.getvalue()
