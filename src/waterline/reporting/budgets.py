"""What each row spent: the comparison of two methods is fair only at matched budgets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from waterline.reporting.runs import Run

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


def budget(runs: Sequence[Run], step: int) -> Budget:
    """Sum what each of the seeds spent up to ``step``."""
    spent = []
    for run in runs:
        rows = run.metrics[run.metrics.step <= step].reindex(columns=_LOGGED).astype("float64")
        rollouts, tokens, waterline, seconds = (rows[name] for name in _LOGGED)
        # min_count: seconds that were not logged are unknown rather than 0.
        spent.append([rollouts.max(), tokens.max(), waterline.mean(), seconds.sum(min_count=1)])
    return Budget(*np.mean(spent, axis=0).tolist())


def waterline_notes(label: str, runs: Sequence[Run], spent: Budget) -> list[str]:
    """Return a sentence when a row that allocates by success estimates had them too rarely."""
    if runs[0].estimates not in ("given", "pilot") or spent.waterline > WATERLINE_SHARE:
        return []
    if np.isnan(spent.waterline):
        return [f"{label} logged no share of waterline steps."]
    return [
        f"{label} allocated by the waterline in {100 * spent.waterline:.0f}% of its steps, not "
        f"in more than {100 * WATERLINE_SHARE:.0f}%: train over more epochs before comparing."
    ]


def match_notes(label: str, spent: Budget, baseline: str, reference: Budget) -> list[str]:
    """Return a sentence when a row spent more or fewer rollouts than its baseline."""
    ratio = spent.rollouts / reference.rollouts
    unequal = abs(ratio - 1) > TOLERANCE  # not where either logged nothing: NaN
    return [f"{label} used {ratio:.2f}× the rollouts of {baseline}."] if unequal else []
