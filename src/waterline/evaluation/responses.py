"""The texts of evaluated responses, kept as parquet files so that people can look at them."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.lib import ArrowException

from waterline.runs import BadInput, atomic_write

TYPES = {
    "step": "int64", "split": "str", "prompt": "int64", "sample": "int64", "tokens": "int64",
    "verdict": "str", "reward": "float64", "text": "str",
}  # fmt: skip
_KEY = ["step", "split", "prompt", "sample"]
_KINDS = {"int64": pa.int64(), "float64": pa.float64(), "str": pa.string()}
_SCHEMA = pa.schema([(name, _KINDS[kind]) for name, kind in TYPES.items()])


@dataclass(frozen=True)
class ResponseStore:
    """``eval/responses/<split>/step-<n>/*.parquet``: one row for each response.

    ``prompt`` is the persistent id, ``sample`` the number of the response among those of its
    prompt, ``tokens`` its length, the stop token included. The files of a chunk are written before
    its counts, so that no counted response lacks its text. A chunk that is made again after a kill
    has the same samples, and each stands once in what is read.
    """

    folder: Path

    def write(self, step: int, split: str, rows: pd.DataFrame) -> None:
        """Adds a chunk; ``rows`` has the columns of ``TYPES`` from ``prompt`` on."""
        whole = rows.assign(step=step, split=split)[list(TYPES)].astype(TYPES)
        first, last = whole["prompt"].iloc[0], whole["prompt"].iloc[-1]
        samples = f"{whole['sample'].min()}-{whole['sample'].max()}"
        sink = io.BytesIO()
        table = pa.Table.from_pandas(whole, schema=_SCHEMA, preserve_index=False)
        pq.write_table(table, sink, compression="zstd")
        name = f"prompts-{first}-{last}_samples-{samples}.parquet"
        atomic_write(self._place(step, split) / name, sink.getvalue())

    def read(
        self, step: int, split: str, prompt: int | None = None, columns: Sequence[str] = ()
    ) -> pd.DataFrame:
        """The responses of one checkpoint on one split, or to one prompt of it, in their order.

        Args:
            columns: those wanted besides prompt and sample; none are all.

        Raises:
            BadInput: A file cannot be read.
        """
        files = sorted(self._place(step, split).glob("*.parquet"))
        wanted = [n for n in TYPES if n in (*_KEY, *columns)] if columns else list(TYPES)
        only = None if prompt is None else pc.field("prompt") == prompt
        try:
            data = ds.dataset(list(map(str, files)), schema=_SCHEMA, format="parquet")
            rows = data.to_table(columns=wanted, filter=only).to_pandas()
        except (ArrowException, OSError) as error:
            raise BadInput(
                f"The responses in {self._place(step, split)} cannot be read ({error}): restore "
                "them, or move the folder eval away and evaluate again."
            ) from error
        found: pd.DataFrame = rows.drop_duplicates(_KEY, keep="last")
        return found.sort_values(["prompt", "sample"], ignore_index=True)

    def last(self, split: str) -> int:
        """The last checkpoint that has responses on ``split``.

        Raises:
            BadInput: None has.
        """
        steps = (re.fullmatch(r"step-(\d+)", p.name) for p in (self.folder / split).glob("step-*"))
        found = [int(match[1]) for match in steps if match]
        if not found:
            raise BadInput(
                f"{self.folder} holds no responses on {split}: evaluate with keep_responses=true "
                "(if it was evaluated without, move its folder eval away before), or choose "
                "another split."
            )
        return max(found)

    def _place(self, step: int, split: str) -> Path:
        return self.folder / split / f"step-{step}"
