"""One run folder as reporting sees it."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from waterline.reporting.kinds import WITHOUT_ROLLOUTS, Kind
from waterline.reporting.run_tables import COUNTS, PROBABILITIES, TableOfRun
from waterline.runs import read_metrics


@dataclass(frozen=True)
class Run:
    """One run folder; its tables are read when first asked for.

    ``status`` is 'done' only for a finished run; a folder without ``status.json`` reads 'unknown'.
    """

    path: Path
    experiment: str
    method: str
    seed: int
    status: str
    config: dict[str, Any] = field(repr=False)

    @property
    def settings(self) -> str:
        """The folder that names the settings, e.g. 'n0-16_nmax-64'."""
        return self.path.parent.name

    @property
    def exact(self) -> bool:
        """Whether the run was evaluated by exact probabilities: its responses are one label."""
        return (self.path / PROBABILITIES.file).exists()

    @property
    def normalisation(self) -> str:
        """The loss normalisation; '' where there is none to speak of: base model, one label."""
        none = self.method == "base" or self.exact
        return "" if none else str(self.setting("losses.normalisation", ""))

    @property
    def n0(self) -> int | None:
        """The rollouts per prompt; None for a method that samples nothing."""
        n0 = self.setting("allocation.n0")
        return None if self.method in WITHOUT_ROLLOUTS or n0 is None else int(n0)

    @property
    def p_hat(self) -> str:
        """What the waterline was computed from, if not exact probabilities: 'pilot', 'history'."""
        allocator = str(self.setting("allocation._target_", ""))
        if allocator.endswith("PilotWaterlineAllocator"):
            return "pilot"
        estimate = str(self.setting("success._target_", ""))
        return "history" * ("Waterline" in allocator and estimate.endswith("DiscountedBeta"))

    @property
    def kind(self) -> Kind:
        """What names the row that this run belongs to."""
        if self.exact:
            return Kind("", self.n0, self.method, self.p_hat, self.settings)
        return Kind(self.normalisation, method=self.method, settings=self.settings)

    def setting(self, key: str, default: Any = None) -> Any:
        """Return one value of the run's configuration by its dotted key."""
        value: Any = self.config
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                return default
            value = value[part]
        return value

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """``metrics.jsonl``: one row a step, columns as in ``waterline.runs.metrics``."""
        rows = read_metrics(self.path / "metrics.jsonl")
        return pd.DataFrame(rows) if rows else pd.DataFrame({"step": pd.Series(dtype="int64")})

    @cached_property
    def allocation(self) -> pd.DataFrame:
        """All ``allocation/*.parquet``: step, prompt, p_hat, n; in order of the steps."""
        files = sorted((self.path / "allocation").glob("*.parquet"))
        if not files:
            return pd.DataFrame(columns=["step", "prompt", "p_hat", "n"])
        return pd.concat(map(pd.read_parquet, files)).sort_values("step", kind="stable")

    @cached_property
    def counts(self) -> pd.DataFrame:
        """``eval/counts.parquet``: step, split, prompt, n, c; empty before any evaluation."""
        return COUNTS.read(self.path)

    @cached_property
    def probabilities(self) -> pd.DataFrame:
        """``eval/probabilities.parquet``: step, split, prompt, p, top1; empty where it lacks."""
        return PROBABILITIES.read(self.path)

    def table(self, kind: TableOfRun) -> pd.DataFrame:
        """Return one of the run's other tables, empty where it lacks."""
        return kind.read(self.path)

    @cached_property
    def _evaluations(self) -> dict[tuple[str, int], pd.DataFrame]:
        frame = self.probabilities if self.exact else self.counts
        columns = ["p"] if self.exact else ["n", "c"]
        found = {}
        for (split, _), rows in frame.groupby(["split", "step"]):
            found[str(split), int(rows["step"].iloc[0])] = rows.set_index("prompt")[
                columns
            ].sort_index()
        return found

    def steps(self, split: str) -> list[int]:
        """Return the steps that were evaluated on ``split``."""
        return sorted(step for name, step in self._evaluations if name == split)

    def answers(self, split: str, step: int | None = None) -> pd.DataFrame:
        """Return n and c, or p, by prompt at ``step`` (default: the last one after step 0).

        Empty where there is no such evaluation.
        """
        step = self.last_step(split) if step is None else step
        return self._evaluations.get((split, -1 if step is None else step), pd.DataFrame())

    def last_step(self, split: str) -> int | None:
        """Return the last evaluated step after step 0, or None where there is none."""
        return max((step for step in self.steps(split) if step > 0), default=None)

    def document(self, name: str) -> dict[str, Any]:
        """Return one of the run's JSON files ('status', 'provenance'); {} where it lacks."""
        file = self.path / f"{name}.json"
        loaded = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return loaded if isinstance(loaded, dict) else {}
