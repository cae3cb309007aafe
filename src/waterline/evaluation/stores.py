"""What evaluations found, as parquet files: counts of correct responses, or exact probabilities."""

from __future__ import annotations

import io
import json
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow.lib import ArrowException

from waterline.runs import BadInput, atomic_write

Ints = NDArray[np.int64]
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
        try:
            return pd.read_parquet(self.path)[list(self.types)]
        except (ArrowException, KeyError, ValueError) as error:
            raise _damaged(self.path) from error

    def at(self, step: int, split: str) -> pd.DataFrame:
        """Rows of one checkpoint on one split, in order of prompts."""
        rows = self.read()
        chosen = rows[(rows["step"] == step) & (rows["split"] == split)]
        return chosen.sort_values("prompt").reset_index(drop=True)

    def require_writable(self) -> None:
        """Raise OSError where a write would: before hours go into what it would hold."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=self.path.parent):
            pass

    def truncate_after(self, step: int) -> None:
        """Moves rows of checkpoints beyond ``step``, which a resumed run makes again, elsewhere.

        They go to ``<name>.<attempt>.parquet``, attempts counting from 1: they may be of another
        split, or have more responses, than the run itself will make.
        """
        rows = self.read()
        later = rows["step"] > step
        if later.any():
            names = (self.path.with_suffix(f".{i}{self.path.suffix}") for i in count(1))
            self._save(rows[later], next(name for name in names if not name.exists()))
            self._save(rows[~later], self.path)

    def _add(self, step: int, split: str, prompt: Ints, **values: NDArray[Any]) -> None:
        new = pd.DataFrame({"step": step, "split": split, "prompt": prompt, **values})
        rows = pd.concat([self.read(), new.astype(self.types)], ignore_index=True)
        rows = rows.drop_duplicates(list(_KEY), keep="last")
        self._save(rows.sort_values(["split", "step", "prompt"], ignore_index=True), self.path)

    def _save(self, rows: pd.DataFrame, path: Path) -> None:
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pandas(rows.astype(self.types), preserve_index=False), sink)
        atomic_write(path, sink.getvalue())


class CountsStore(StepTable):
    """``eval/counts.parquet``: c of n responses were correct, enough for any K and any interval."""

    values: ClassVar[dict[str, str]] = {"n": "int64", "c": "int64"}

    def held(self, step: int, split: str) -> dict[int, tuple[int, int]]:
        """N and c of every prompt that has some."""
        rows = self.at(step, split)
        return {int(p): (int(n), int(c)) for p, n, c in rows[["prompt", "n", "c"]].to_numpy()}

    def use_sampling(self, split: str, sampling: dict[str, Any], grows: bool) -> None:
        """Notes how ``split`` is sampled and judged: temperature, top_p, top_k, seed, rules.

        Args:
            grows: whether counts follow; a folder that takes none is found before they are made.

        Raises:
            BadInput: The counts on this split were sampled differently.
        """
        file = self.path.with_name(f"{self.path.stem}-sampling.json")
        noted = _read_json(file) if file.exists() else {}
        # A note without counts is left from an evaluation that was stopped before its first ones.
        held = noted.get(split) if (self.read()["split"] == split).any() else None
        if held not in (None, sampling):
            raise BadInput(
                f"{self.path} holds counts on {split} made with {held}, asked for {sampling}: "
                f"evaluate with the same settings, or move {self.path.parent} away."
            )
        if grows:
            atomic_write(file, json.dumps({**noted, split: sampling}, indent=2) + "\n")

    def write(self, step: int, split: str, prompt: Ints, n: Ints, c: Ints) -> None:
        """Adds or replaces rows."""
        self._add(step, split, prompt, n=n, c=c)


def _read_json(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damaged(file) from error
    return found


def _damaged(file: Path) -> BadInput:
    return BadInput(
        f"{file} cannot be read, it may be cut short: restore it, or move it away and evaluate "
        "again."
    )


class ProbabilityStore(StepTable):
    """``eval/probabilities.parquet``, for tasks whose success probability is known.

    ``p`` is the policy's probability of a correct response: exact Pass@K for any K
    (:func:`exact_pass_at_k`). ``top1`` tells whether the likeliest response is correct.
    """

    values: ClassVar[dict[str, str]] = {"p": "float64", "top1": "bool"}

    def write(
        self, step: int, split: str, prompt: Ints, p: NDArray[np.float64], top1: NDArray[np.bool_]
    ) -> None:
        """Adds or replaces rows."""
        self._add(step, split, prompt, p=p, top1=top1)
