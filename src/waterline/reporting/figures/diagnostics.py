"""Figures 15 and 16: logged metrics over training, a column each, a row per normalisation."""

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from waterline.reporting.figures.panels import grid, normalisations
from waterline.reporting.figures.series import by_kind, metric_series, trailing_mean
from waterline.reporting.figures.style import RC, draw_seeds, legend, style
from waterline.reporting.runs import Run
from waterline.runs.metrics import metric

WINDOW = 50  # trailing steps, as in SERA's Figure 15
NOTE = (
    f"thick: trailing {WINDOW}-step mean, averaged over seeds; "
    "thin: single seeds, or single steps where there is one seed"
)


def metrics_figure(runs: Sequence[Run], names: Sequence[str]) -> Figure:
    """Draw one column per metric: single steps faint, their trailing means in full colour.

    With several seeds the faint band is the range of the trailing means over seeds.
    """
    groups = by_kind(runs)
    figure, axes = grid(normalisations(runs), len(names))
    with mpl.rc_context(RC):
        for row, normalisation in zip(axes, normalisations(runs), strict=True):
            shown = [kind for kind in groups if kind.normalisation == normalisation]
            for panel, name in zip(row, names, strict=True):
                for kind in shown:
                    _line(panel, groups[kind], name, kind.method)
                panel.set_xlabel(metric("step").axis)
                panel.set_ylabel(metric(name).axis)
                panel.margins(x=0.02)
        legend(figure, [panel for row in axes for panel in row], NOTE)
    return figure


def _line(panel: Axes, runs: list[Run], name: str, method: str) -> None:
    steps, values = metric_series(runs, name)
    if not len(steps):
        return
    if len(values) == 1:
        panel.plot(steps, values[0], color=style(method)["color"], linewidth=0.5, alpha=0.3)
    draw_seeds(panel, steps, trailing_mean(values, WINDOW), method)
