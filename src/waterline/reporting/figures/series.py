"""Series over training steps, stacked over the seeds of one method."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterline.reporting.kinds import BASE, Kind, in_order
from waterline.reporting.rows import collect
from waterline.reporting.runs import Run
from waterline.runs import BadInput

Floats = NDArray[np.float64]


def by_kind(runs: Iterable[Run]) -> dict[Kind, list[Run]]:
    """Group trained runs by their kind, in the order of the tables.

    Raises:
        BadInput: when a group mixes settings, since one line cannot show two.
    """
    groups: dict[Kind, list[Run]] = {}
    for run in runs:
        if run.method != BASE:
            groups.setdefault(run.kind.without_settings(), []).append(run)
    for kind, members in groups.items():
        settings = sorted({run.settings for run in members})
        if len(settings) > 1:
            raise BadInput(
                f"{kind.label} was run with the settings {', '.join(settings)}: choose with "
                "settings=[<name>,…]."
            )
    return {kind: groups[kind] for kind in in_order(groups)}


def metric_series(runs: Iterable[Run], name: str) -> tuple[Floats, Floats]:
    """Return steps (X,) and the metric (S, X) on the steps that all seeds logged."""
    columns = [run.metrics.set_index("step")[name].dropna() for run in runs if name in run.metrics]
    return _stack(columns)


def pass_at_k_series(
    runs: Iterable[Run], k: int, split: str, estimator: str
) -> tuple[Floats, Floats]:
    """Return steps (X,) and Pass@K in percent (S, X) at the steps that all seeds evaluated."""
    columns = []
    for run in runs:
        means = {}
        for step in run.steps(split):
            answers = collect({run.seed: run.answers(split, step)}, str(run.path))
            if k > answers.most:
                raise BadInput(
                    f"Pass@{k} needs {k} responses per {split} question and {run.path} has "
                    f"{answers.most:g}: choose smaller curve_ks."
                )
            means[step] = 100 * answers.scores(k, estimator).mean()
        if means:
            columns.append(pd.Series(means))
    return _stack(columns)


def rolling_mean(y: Floats, window: int, *, center: bool = False) -> Floats:
    """Return the mean of the last ``window`` values along the last axis, or of those around each.

    It is over fewer values where the window reaches beyond an end.
    """
    frame = pd.DataFrame(y.T).rolling(window, min_periods=1, center=center).mean()
    return np.asarray(frame.to_numpy().T, dtype=np.float64)


def _stack(columns: list["pd.Series[float]"]) -> tuple[Floats, Floats]:
    if not columns:
        return np.empty(0), np.empty((0, 0))
    table = pd.concat(columns, axis=1, join="inner").sort_index()
    return table.index.to_numpy(dtype=np.float64), table.to_numpy(dtype=np.float64).T
