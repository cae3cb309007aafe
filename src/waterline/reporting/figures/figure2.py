"""Figure 2: oracle allocation in image classification, with direct cross-entropy."""

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from waterline.reporting.figures.panels import SEEDS_NOTE, Groups, Looks, draw_curves, draw_profile
from waterline.reporting.figures.series import by_kind, metric_series, rolling_mean
from waterline.reporting.figures.style import RC, budget_styles, draw_seeds, legend, lettered
from waterline.reporting.rows import table_rows
from waterline.reporting.runs import Run
from waterline.runs import BadInput
from waterline.runs.metrics import metric

COSINE = "grad/cosine_ce"
WINDOW = 5  # measurements, as in SERA's Figure 2


@mpl.rc_context(RC)
def figure2(
    runs: Sequence[Run],
    split: str = "test",
    curve_split: str = "dev",
    curve_ks: Sequence[int] | None = None,
) -> Figure:
    """Draw Pass@1 and Pass@128 over steps, the final profile, and the cosine at the larger N₀.

    Curves read ``curve_split``, the profile ``split``. The cosine is that of the sampled and the
    cross-entropy gradient along each method's own training (SERA, Eq. 47). Runs whose allocation
    did not know the exact probabilities are not shown.

    Raises:
        BadInput: when no run was evaluated by exact probabilities, or one line would mix settings.
    """
    shown = [run for run in runs if run.exact and not run.p_hat]
    if not shown:
        raise BadInput(
            "No finished run was evaluated by exact probabilities: this figure is of image runs."
        )
    rows, _ = table_rows(shown, split, base=False)
    groups = by_kind(shown)
    looks = budget_styles(groups)
    figure = Figure(figsize=(11.6, 3.2), layout="constrained")
    panels = figure.subplots(1, 4)
    ks = list(curve_ks or (1, 128))
    for panel, k in zip(panels, ks, strict=False):
        draw_curves(panel, groups, k, curve_split, looks=looks)
    draw_profile(panels[2], rows, split, looks=looks)
    largest = _cosines(panels[3], groups, looks)
    curves = [f"Pass@{k} during training" for k in ks]
    lettered(panels, [*curves, "Final profile", f"Gradient cosine{largest}"])
    thin = f"(d) thin: measurements, thick: centred {WINDOW}-point mean"
    legend(figure, f"{SEEDS_NOTE}; {thin}")
    return figure


def _cosines(panel: Axes, groups: Groups, looks: Looks) -> str:
    """Draw the cosines at the largest N₀ that measured any; return how the title names it."""
    found = {kind: metric_series(runs, COSINE) for kind, runs in groups.items() if kind.n0}
    found = {kind: series for kind, series in found.items() if len(series[0])}
    largest = max((kind.n0 or 0 for kind in found), default=0)
    for kind, (steps, values) in found.items():
        if kind.n0 == largest:
            look = looks[kind]
            panel.plot(steps, values.T, color=look["color"], linewidth=0.5, alpha=0.3)
            mean = rolling_mean(values, WINDOW, center=True).mean(axis=0, keepdims=True)
            draw_seeds(panel, steps, mean, kind.method, **look)
    panel.set(xlabel=metric("step").axis, ylabel=metric(COSINE).axis)
    return f", N₀ = {largest}" if largest else ""
