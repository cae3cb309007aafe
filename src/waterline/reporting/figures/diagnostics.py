"""Figures 15 and 16: logged metrics over training, a column each, a row per normalisation."""

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from waterline.reporting.figures.panels import grid
from waterline.reporting.figures.series import metric_series, rolling_mean
from waterline.reporting.figures.style import RC, draw_seeds, legend, style
from waterline.reporting.runs import Run
from waterline.runs.metrics import metric

WINDOW = 50  # trailing steps, as in SERA's Figure 15
NOTE = (
    f"thick: trailing {WINDOW}-step mean, averaged over seeds; "
    "thin: single seeds, or single steps where there is one seed"
)


@mpl.rc_context(RC)
def metrics_figure(runs: Sequence[Run], names: Sequence[str]) -> Figure:
    """Draw one column per metric: single steps faint, their trailing means in full colour.

    With several seeds the faint band is the range of the trailing means over seeds.
    """
    figure, rows = grid(runs, len(names))
    for _, groups, panels in rows:
        for panel, name in zip(panels, names, strict=True):
            for kind, members in groups.items():
                _line(panel, members, name, kind.method)
            panel.set(xlabel=metric("step").axis, ylabel=metric(name).axis)
            panel.margins(x=0.02)
    legend(figure, NOTE)
    return figure


def _line(panel: Axes, runs: list[Run], name: str, method: str) -> None:
    steps, values = metric_series(runs, name)
    if not len(steps):
        return
    if len(values) == 1:
        panel.plot(steps, values[0], color=style(method)["color"], linewidth=0.5, alpha=0.3)
    draw_seeds(panel, steps, rolling_mean(values, WINDOW), method)
