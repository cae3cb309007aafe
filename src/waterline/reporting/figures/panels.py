"""The panels that figures share: a row for each normalisation, curves of Pass@K, final profiles."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from waterline.reporting.figures.series import pass_at_k_series
from waterline.reporting.figures.style import RC, draw_seeds, log2_axis
from waterline.reporting.kinds import BASE, NORMALISATION_LABELS, Kind, normalisation_label, rank
from waterline.reporting.rows import Row
from waterline.reporting.runs import Run

Looks = Mapping[Kind, Mapping[str, Any]]
SEEDS_NOTE = "thick: mean over seeds; thin: single seeds; band: their range"


def grid(normalisations: Sequence[str], columns: int) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with a titled row of panels for each normalisation."""
    with mpl.rc_context(RC):
        size = (2.9 * columns + 0.3, 2.4 * len(normalisations) + 0.5)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(normalisations), columns, squeeze=False)
        for i, name in enumerate(normalisations):
            axes[i, 0].set_title(
                f"({'abcdef'[i]}) {normalisation_label(name)}", loc="left", fontweight="bold"
            )
    return figure, axes.tolist()


def normalisations(runs: Iterable[Run]) -> list[str]:
    """Return the distinct normalisations of the trained runs, in the order of the tables."""
    names = {run.normalisation for run in runs if run.method != BASE}
    return sorted(names, key=lambda name: rank(NORMALISATION_LABELS, name))


def draw_curves(
    panel: Axes,
    groups: Mapping[Kind, list[Run]],
    k: int,
    split: str,
    estimator: str = "unbiased",
    looks: Looks | None = None,
) -> None:
    """Draw Pass@K on ``split`` over training, a line per kind."""
    for kind, runs in groups.items():
        steps, values = pass_at_k_series(runs, k, split, estimator)
        if len(steps):
            draw_seeds(panel, steps, values, kind.method, **(looks or {}).get(kind, {}))
    panel.set_xlabel("Training step")
    panel.set_ylabel(f"Pass@{k} (%), {split}")


def draw_profile(
    panel: Axes,
    rows: Sequence[Row],
    split: str,
    estimator: str = "unbiased",
    looks: Looks | None = None,
) -> None:
    """Draw the final Pass@K, a line per row, at the powers of two that every row can be scored at.

    Where the success probability is known there is no largest K, and the line ends at 1,024.
    """
    most = min(row.answers.most for row in rows)
    ks = [2**i for i in range(int(np.log2(most if np.isfinite(most) else 1024)) + 1)]
    for row in rows:
        scores = [row.answers.scores(k, estimator).mean(axis=1) for k in ks]
        look = (looks or {}).get(row.kind, {})
        x = np.asarray(ks, dtype=np.float64)
        draw_seeds(panel, x, 100 * np.stack(scores, 1), row.method, **look)
    log2_axis(panel, ks)
    panel.set_xlabel("K")
    panel.set_ylabel(f"Final Pass@K (%), {split}")
