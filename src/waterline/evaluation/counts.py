"""``eval/counts.parquet``: how many of n responses were correct, per checkpoint and prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterline.evaluation.step_table import StepTable
from waterline.runs import BadInput, atomic_write

Ints = NDArray[np.int64]


class CountsStore(StepTable):
    """Counts (step, split, prompt, n, c): enough for any K and any interval."""

    values: ClassVar[dict[str, str]] = {"n": "int64", "c": "int64"}

    def missing(self, step: int, split: str, prompts: list[int], n: int) -> list[int]:
        """The prompts that have no row with ``n`` responses yet, in the order given."""
        rows = self.at(step, split)
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
        self.add(pd.DataFrame({"step": step, "split": split, "prompt": prompt, "n": n, "c": c}))
