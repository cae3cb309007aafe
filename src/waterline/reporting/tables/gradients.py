"""Cosines and fidelities at shared parameters, with the difference from MaxRL."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from waterline.reporting.kinds import Kind
from waterline.reporting.names import method_label
from waterline.reporting.run import Run
from waterline.reporting.scores import Estimate
from waterline.reporting.tables.table import Section
from waterline.reporting.tables.text import Grid, difference_lines, value_lines

DIGITS = 4
NOTHING = Estimate(np.nan, (np.nan, np.nan), (np.nan, np.nan), 0, "batches")
COSINES = {
    "cosine_sample": "Single sample",
    "cosine_mean": "Mean of samples",
    "cosine_expected": "Expected",
}
FIDELITIES = {
    "kappa_before_mean": "κ(p, N₀): mean",
    "kappa_before_sd": "κ(p, N₀): sd",
    "kappa_after_mean": "κ(p, N): mean",
    "kappa_after_sd": "κ(p, N): sd",
    "active": "Active prompts",
}


@dataclass(frozen=True)
class GradientTable:
    """``values[i]`` and ``deltas[i]`` by quantity belong to ``kinds[i]``.

    A kind's difference is from the method ``baseline`` at the same budget, {} where there is none.
    """

    kinds: tuple[Kind, ...]
    values: tuple[dict[str, Estimate], ...]
    deltas: tuple[dict[str, Estimate], ...]
    baseline: str
    runs: tuple[Run, ...]
    subtitle: str
    notes: tuple[str, ...]

    def sections(self, paper: pd.DataFrame | None = None) -> list[Section]:
        """Return cosines, their differences, and fidelities; the papers have no such table."""
        heads = ["", "", *COSINES.values()]
        found = [Section("Cosine with the gradient of cross-entropy", heads, self._values(COSINES))]
        if any(self.deltas):
            found.append(Section("Differences of the cosine", heads, self._differences(COSINES)))
        heads = ["", "", *FIDELITIES.values()]
        return [*found, Section("Fidelity κ", heads, self._values(FIDELITIES))]

    def tidy(self) -> pd.DataFrame:
        """Return one line per budget, method and quantity."""
        return pd.DataFrame(
            {
                "n0": kind.n0,
                "method": kind.method,
                "quantity": name,
                "value": value.value,
                **_bounds("batches", value.units),
                **_bounds("runs", value.runs),
                "baseline": self.baseline if name in delta else "",
                "delta": delta[name].value if name in delta else np.nan,
                **_bounds("delta_batches", delta[name].units if name in delta else None),
                **_bounds("delta_runs", delta[name].runs if name in delta else None),
                "claim_basis": delta[name].basis if name in delta else "",
                "excludes_zero": delta[name].excludes_zero if name in delta else "",
                "seeds": " ".join(str(run.seed) for run in self.runs),
            }
            for kind, values, delta in zip(self.kinds, self.values, self.deltas, strict=True)
            for name, value in values.items()
        )

    def _values(self, names: Iterable[str]) -> Grid:
        return [
            line
            for kind, values in zip(self.kinds, self.values, strict=True)
            for line in value_lines(kind.label, [values.get(n, NOTHING) for n in names], DIGITS)
        ]

    def _differences(self, names: Iterable[str]) -> Grid:
        grid = []
        for kind, delta in zip(self.kinds, self.deltas, strict=True):
            pair = f"{method_label(kind.method)} − {method_label(self.baseline)}"
            if delta:
                shown = [delta.get(name, NOTHING) for name in names]
                grid += difference_lines(kind.titled(pair), shown, DIGITS)
        return grid


def _bounds(name: str, bounds: tuple[float, float] | None) -> dict[str, float]:
    low, high = bounds or (np.nan, np.nan)
    return {f"{name}_low": low, f"{name}_high": high}
