"""What each row spent: the comparison of two methods is fair only at matched budgets."""

from dataclasses import dataclass

import numpy as np

from waterline.reporting.rows import Row

WATERLINE_SHARE = 0.9
TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Budget:
    """Means over the seeds of a row; NaN where the runs logged nothing (the base model)."""

    rollouts: float
    tokens: float
    waterline: float
    seconds: float


def budget(row: Row) -> Budget:
    """Sum what the runs of ``row`` spent up to the evaluated step."""
    if row.method == "base":
        return Budget(*[np.nan] * 4)
    spent = []
    for run in row.runs:
        rows = run.metrics[run.metrics.step <= row.step]
        spent.append(
            [
                rows["rollouts/total"].max() if "rollouts/total" in rows else np.nan,
                rows["rollouts/total_tokens"].max() if "rollouts/total_tokens" in rows else np.nan,
                rows["allocation/waterline"].mean() if "allocation/waterline" in rows else np.nan,
                rows["time/step"].sum() if "time/step" in rows else np.nan,
            ]
        )
    return Budget(*np.mean(np.asarray(spent, dtype=np.float64), axis=0).tolist())


def waterline_note(row: Row, spent: Budget) -> str | None:
    """Return a sentence when a row that allocates by the waterline did so too rarely."""
    target = str(row.runs[0].setting("allocation._target_", ""))
    if row.method != "sera" and "Waterline" not in target:
        return None
    if np.isnan(spent.waterline):
        return f"{row.label} logged no share of waterline steps."
    if spent.waterline > WATERLINE_SHARE:
        return None
    return (
        f"{row.label} allocated by the waterline in {100 * spent.waterline:.0f}% of its steps, not "
        f"in more than {100 * WATERLINE_SHARE:.0f}%: train over more epochs before comparing."
    )


def match_note(row: Row, spent: Budget, baseline: Row, reference: Budget) -> str | None:
    """Return a sentence when a row spent more or fewer rollouts than its baseline."""
    ratio = spent.rollouts / reference.rollouts
    if np.isnan(ratio) or abs(ratio - 1) <= TOLERANCE:
        return None
    return f"{row.label} used {ratio:.2f}× the rollouts of {baseline.label}."
