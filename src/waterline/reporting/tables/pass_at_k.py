"""A table of Pass@K: values with both intervals, differences, budgets."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log2

import numpy as np
import pandas as pd

from waterline.reporting.budgets import Budget
from waterline.reporting.names import method_label
from waterline.reporting.rows import Row
from waterline.reporting.run import Run
from waterline.reporting.scores import Estimate
from waterline.reporting.tables.comparison import Comparison
from waterline.reporting.tables.table import Section
from waterline.reporting.tables.text import Grid, amount, difference_lines, value_lines

BRIEF = (1, 8, 128, 1024)  # the K that a terminal shows, or those nearest to them, of more than …
MANY = 6


@dataclass(frozen=True)
class PassAtKTable:
    """A table of Pass@K in percent.

    ``values[i][j]`` belongs to ``rows[i]`` and ``ks[j]``; ``deltas[i]`` is the difference from the
    baseline of equal budget and ``gaps[i]`` that from the reference, None where there is none.
    """

    split: str
    estimator: str
    ks: tuple[int, ...]
    rows: tuple[Row, ...]
    values: tuple[tuple[Estimate, ...], ...]
    deltas: tuple[Comparison | None, ...]
    gaps: tuple[Comparison | None, ...]
    budgets: tuple[Budget, ...]
    notes: tuple[str, ...]

    @property
    def subtitle(self) -> str:
        """The split."""
        return f"Split: {self.split}."

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run of every row."""
        return tuple(run for row in self.rows for run in row.runs)

    def sections(self, paper: pd.DataFrame | None = None) -> list[Section]:
        """Return values, differences where there are any, and budgets."""
        header = ["", "", *(f"K = {k}" for k in self.ks)]
        values: Grid = []
        for row, line in zip(self.rows, self.values, strict=True):
            theirs = None if paper is None else [_paper(paper, row, k) for k in self.ks]
            values += value_lines(row.label, line, paper=theirs)
        brief = [2 + j for j in _brief(self.ks)]
        found = [Section("Pass@K (%)", header, values, brief=brief)]
        if deltas := [delta for delta in self.deltas if delta]:
            found.append(Section("Differences (points)", header, _lines(deltas), brief=brief))
        if gaps := [gap for gap in self.gaps if gap]:
            name = method_label(gaps[0].other.method)
            title = f"Differences from {name} (points)"
            found.append(Section(title, header, _lines(gaps), brief=brief))
        return [*found, self._budgets()]

    def tidy(self) -> pd.DataFrame:
        """Return one line per row and K; percent, points, and NaN where nothing was measured."""
        return pd.DataFrame(
            [self._line(i, j) for i in range(len(self.rows)) for j in range(len(self.ks))]
        )

    def _budgets(self) -> Section:
        header = ["Row", "Seeds", "Step", "Questions × responses", "Rollouts", "Tokens"]
        lines = [
            [
                row.label,
                ", ".join(map(str, row.answers.seeds)),
                str(row.step),
                row.answers.size,
                amount(spent.rollouts),
                amount(spent.tokens),
                "–" if np.isnan(spent.waterline) else f"{100 * spent.waterline:.1f}%",
            ]
            for row, spent in zip(self.rows, self.budgets, strict=True)
        ]
        return Section("Budgets (per run)", [*header, "Waterline steps"], lines, fixed=7)

    def _line(self, i: int, j: int) -> dict[str, object]:
        row, value, gap = self.rows[i], self.values[i][j], self.gaps[i]
        counted = np.isfinite(row.answers.most)
        line: dict[str, object] = {
            "split": self.split,
            "step": row.step,
            "estimator": row.answers.estimator(self.estimator),
            "normalisation": row.kind.normalisation,
            "n0": row.runs[0].n0 if row.method != "base" else None,
            "method": row.method,
            "p_hat": row.kind.p_hat,
            "settings": row.kind.settings,
            "k": self.ks[j],
            "value": value.value,
            "unit": "%",
            **_bounds("questions", value.units),
            **_bounds("runs", value.runs),
            **_difference(self.deltas[i], j, "baseline", "delta", ""),
        }
        if any(self.gaps):
            line |= _difference(gap, j, "reference", "gap", "gap_")
        return line | {
            "seeds": " ".join(map(str, row.answers.seeds)),
            "questions": len(row.answers.prompts),
            "responses": int(row.answers.most) if counted else None,
            **{f"budget_{name}": value for name, value in asdict(self.budgets[i]).items()},
        }


def _brief(ks: Sequence[int]) -> list[int]:
    """The places in ``ks`` that a terminal shows, [] for all."""
    if len(ks) <= MANY:
        return []
    return sorted({min(range(len(ks)), key=lambda j: abs(log2(ks[j] / k))) for k in BRIEF})


def _lines(comparisons: list[Comparison]) -> Grid:
    return [line for c in comparisons for line in difference_lines(c.label, c.values)]


def _difference(
    found: Comparison | None, j: int, other: str, name: str, prefix: str
) -> dict[str, object]:
    delta = found.values[j] if found else None
    nothing = (np.nan, np.nan)
    return {
        other: found.other.method if found else "",
        name: delta.value if delta else np.nan,
        **_bounds(f"{name}_questions", delta.units if delta else nothing),
        **_bounds(f"{name}_runs", delta.runs if delta else nothing),
        f"{prefix}claim_basis": delta.basis if delta else "",
        f"{prefix}excludes_zero": delta.excludes_zero if delta else "",
    }


def _bounds(name: str, interval: tuple[float, float]) -> dict[str, object]:
    return {f"{name}_low": interval[0], f"{name}_high": interval[1]}


def _paper(paper: pd.DataFrame, row: Row, k: int) -> float:
    kind = row.kind
    found = paper[
        (paper.normalisation.fillna("") == kind.normalisation)
        & (paper.n0.isna() if kind.n0 is None else paper.n0 == kind.n0)
        & (paper.method == kind.method)
        & (paper.k == k)
        & (paper.metric == "pass_at_k")
    ]
    return float(found.value.iloc[0]) if len(found) and not kind.p_hat else np.nan
