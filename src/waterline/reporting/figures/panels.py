"""The panels that figures share: a row for each normalisation, curves of Pass@K, final profiles."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from waterline.reporting.figures.series import by_kind, pass_at_k_series
from waterline.reporting.figures.style import draw_seeds, lettered, log2_axis
from waterline.reporting.kinds import Kind, normalisation_label
from waterline.reporting.rows import Row
from waterline.reporting.runs import Run

Groups = Mapping[Kind, list[Run]]
Looks = Mapping[Kind, Mapping[str, Any]]
SEEDS_NOTE = "thick: mean over seeds; thin: single seeds; band: their range"


def grid(runs: Iterable[Run], columns: int) -> tuple[Figure, list[tuple[str, Groups, list[Axes]]]]:
    """Return a figure with a row of panels for each normalisation: its name, its runs, its panels.

    Raises:
        BadInput: when one line would mix settings.
    """
    groups = by_kind(runs)
    names = list(dict.fromkeys(kind.normalisation for kind in groups))
    size = (2.9 * columns + 0.3, 2.4 * len(names) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(names), columns, squeeze=False)
    lettered(axes[:, 0], [normalisation_label(name) for name in names])
    rows: list[tuple[str, Groups, list[Axes]]] = []
    for name, panels in zip(names, axes.tolist(), strict=True):
        group = {kind: members for kind, members in groups.items() if kind.normalisation == name}
        rows.append((name, group, panels))
    return figure, rows


def draw_curves(
    panel: Axes,
    groups: Groups,
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
    panel.set(xlabel="Training step", ylabel=f"Pass@{k} (%), {split}")


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
    x = np.asarray(ks, dtype=np.float64)
    for row in rows:
        scores = [row.answers.scores(k, estimator).mean(axis=1) for k in ks]
        look = (looks or {}).get(row.kind, {})
        draw_seeds(panel, x, 100 * np.stack(scores, 1), row.method, **look)
    log2_axis(panel, ks)
    panel.set(xlabel="K", ylabel=f"Final Pass@K (%), {split}")
