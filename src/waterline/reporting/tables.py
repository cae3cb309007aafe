"""Pass@K tables: values with both intervals, differences from a baseline, budgets."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from waterline.reporting.budgets import Budget, budget, match_note, waterline_note
from waterline.reporting.names import method_label
from waterline.reporting.readers import Run
from waterline.reporting.rows import Row, table_rows
from waterline.reporting.scores import SEEDS_FOR_A_CLAIM, Estimate, difference, estimate
from waterline.runs import BadInput

ESTIMATOR_NOTES = {
    "unbiased": "Pass@K is the unbiased estimator 1 − C(n−c, K)/C(n, K), averaged over questions.",
    "bootstrap": "Pass@K is 1 − (1 − c/n)^K (K draws with replacement), averaged over questions.",
}
INTERVAL_NOTE = (
    "95% intervals. questions: checkpoints fixed, questions resampled; "
    "runs: seeds, then questions, resampled, paired by seed and question."
)


@dataclass(frozen=True)
class PassAtKTable:
    """A table of Pass@K in percent.

    ``values[i][j]`` belongs to ``rows[i]`` and ``ks[j]``; ``deltas[i][j]`` is the difference from
    ``baselines[i]`` in points, None where the row has no baseline.
    """

    split: str
    estimator: str
    ks: tuple[int, ...]
    rows: tuple[Row, ...]
    values: tuple[tuple[Estimate, ...], ...]
    baselines: tuple[Row | None, ...]
    deltas: tuple[tuple[Estimate, ...] | None, ...]
    budgets: tuple[Budget, ...]
    notes: tuple[str, ...]

    def tidy(self) -> pd.DataFrame:
        """Return one line per row and K; percent, points, and NaN where nothing was measured."""
        return pd.DataFrame(
            [_line(self, i, j) for i in range(len(self.rows)) for j in range(len(self.ks))]
        )


def pass_at_k_table(
    runs: Iterable[Run],
    ks: Sequence[int],
    split: str = "test",
    estimator: str = "unbiased",
    *,
    baseline: str = "maxrl",
    expected: Sequence[tuple[str, str]] = (),
) -> PassAtKTable:
    """Return the table of the final checkpoints; runs that cannot be shown are named in its notes.

    A row's baseline is the row of method ``baseline`` with the same normalisation, rollouts per
    prompt and step. ``estimator`` is 'unbiased' (SERA, Eq. 48) or 'bootstrap' (with replacement,
    as in SERA's Table 4).

    Raises:
        BadInput: when no run can be shown, or no K is at most the number of responses.
    """
    rows, notes = table_rows(runs, split, expected)
    fewest = min(int(row.answers.n.min()) for row in rows)
    shown = tuple(k for k in ks if k <= fewest)
    if not shown:
        raise BadInput(f"Every K is above the {fewest} responses per question: ask for smaller K.")
    if len(shown) < len(ks):
        dropped = ", ".join(str(k) for k in ks if k > fewest)
        notes.append(f"Not shown, above the {fewest} responses per question: K = {dropped}.")
    values = tuple(tuple(estimate(row.answers.scores(k, estimator)) for k in shown) for row in rows)
    budgets = tuple(budget(row) for row in rows)
    baselines = tuple(_baseline(row, rows, baseline, notes) for row in rows)
    deltas: list[tuple[Estimate, ...] | None] = []
    for row, spent, other in zip(rows, budgets, baselines, strict=True):
        notes += [note] if (note := waterline_note(row, spent)) else []
        if other is None:
            deltas.append(None)
            continue
        note = match_note(row, spent, other, budgets[rows.index(other)])
        notes += [note] if note else []
        label = f"{row.label} and {other.label}"
        deltas.append(
            tuple(difference(row.answers, other.answers, k, estimator, label) for k in shown)
        )
    few = min(len(row.answers.seeds) for row in rows if row.method != "base")
    if few < SEEDS_FOR_A_CLAIM:
        notes.append(
            f"With {few} seed{'s' * (few > 1)} in the smallest row, claims are about these "
            "checkpoints only, not about the methods."
        )
    return PassAtKTable(
        split=split,
        estimator=estimator,
        ks=shown,
        rows=tuple(rows),
        values=values,
        baselines=baselines,
        deltas=tuple(deltas),
        budgets=budgets,
        notes=(ESTIMATOR_NOTES[estimator], INTERVAL_NOTE, *notes),
    )


def _baseline(row: Row, rows: Sequence[Row], method: str, notes: list[str]) -> Row | None:
    if row.method in (method, "base"):
        return None
    same = [other for other in rows if other.method == method and other.plan() == row.plan()]
    shared = set(row.answers.seeds).intersection(*(other.answers.seeds for other in same))
    if same and not shared:
        notes.append(f"No difference for {row.label}: it shares no seed with {same[0].label}.")
        return None
    if same and len(shared) < len(row.answers.seeds):
        seeds = ", ".join(map(str, sorted(shared)))
        notes.append(f"The difference for {row.label} is over the shared seeds {seeds} only.")
    if not same:
        notes.append(
            f"No difference for {row.label}: there is no {method_label(method)} with the same "
            "normalisation, rollouts per prompt and step."
        )
        return None
    return same[0]


def _line(table: PassAtKTable, i: int, j: int) -> dict[str, object]:
    row, value, deltas = table.rows[i], table.values[i][j], table.deltas[i]
    delta = deltas[j] if deltas else None
    other = table.baselines[i]
    nothing = (np.nan, np.nan)
    return {
        "split": table.split,
        "step": row.step,
        "estimator": table.estimator,
        "normalisation": row.normalisation,
        "method": row.method,
        "settings": row.settings,
        "k": table.ks[j],
        "value": value.value,
        "unit": "%",
        **_bounds("questions", value.questions),
        **_bounds("runs", value.runs),
        "baseline": other.method if other else "",
        "delta": delta.value if delta else np.nan,
        **_bounds("delta_questions", delta.questions if delta else nothing),
        **_bounds("delta_runs", delta.runs if delta else nothing),
        "claim_basis": delta.basis if delta else "",
        "excludes_zero": delta.excludes_zero if delta else "",
        "seeds": " ".join(map(str, row.answers.seeds)),
        "questions": len(row.answers.prompts),
        "responses": int(row.answers.n.min()),
        **{f"budget_{name}": amount for name, amount in asdict(table.budgets[i]).items()},
    }


def _bounds(name: str, interval: tuple[float, float]) -> dict[str, float]:
    return {f"{name}_low": interval[0], f"{name}_high": interval[1]}
