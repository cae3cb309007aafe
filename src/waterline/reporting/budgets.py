"""What each row spent: the comparison of two methods is fair only at matched budgets."""

from dataclasses import dataclass

import numpy as np

from waterline.reporting.kinds import BASE
from waterline.reporting.rows import Row

WATERLINE_SHARE = 0.9
TOLERANCE = 0.01
_LOGGED = ["rollouts/total", "rollouts/total_tokens", "allocation/waterline", "time/step"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Means over the seeds of a row; NaN where the runs logged nothing (the base model)."""

    rollouts: float
    tokens: float
    waterline: float
    seconds: float


def budget(row: Row) -> Budget:
    """Sum what the runs of ``row`` spent up to the evaluated step."""
    if row.method == BASE:
        return Budget(*[np.nan] * 4)
    spent = []
    for run in row.runs:
        rows = run.metrics[run.metrics.step <= row.step].reindex(columns=_LOGGED).astype("float64")
        rollouts, tokens, waterline, seconds = (rows[name] for name in _LOGGED)
        # min_count: seconds that were not logged are unknown rather than 0.
        spent.append([rollouts.max(), tokens.max(), waterline.mean(), seconds.sum(min_count=1)])
    return Budget(*np.mean(spent, axis=0).tolist())


def waterline_notes(row: Row, spent: Budget) -> list[str]:
    """Return a sentence when a row that allocates by success estimates had them too rarely."""
    if row.runs[0].estimates not in ("given", "pilot") or spent.waterline > WATERLINE_SHARE:
        return []
    if np.isnan(spent.waterline):
        return [f"{row.label} logged no share of waterline steps."]
    return [
        f"{row.label} allocated by the waterline in {100 * spent.waterline:.0f}% of its steps, not "
        f"in more than {100 * WATERLINE_SHARE:.0f}%: train over more epochs before comparing."
    ]


def match_notes(row: Row, spent: Budget, baseline: Row, reference: Budget) -> list[str]:
    """Return a sentence when a row spent more or fewer rollouts than its baseline."""
    ratio = spent.rollouts / reference.rollouts
    unequal = abs(ratio - 1) > TOLERANCE  # not where either logged nothing: NaN
    return [f"{row.label} used {ratio:.2f}× the rollouts of {baseline.label}."] if unequal else []
