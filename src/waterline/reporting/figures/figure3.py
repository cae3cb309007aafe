"""Figure 3: Pass@K over training, and the final profile."""

from collections.abc import Iterable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from waterline.reporting.figures.panels import SEEDS_NOTE, draw_curves, draw_profile, grid
from waterline.reporting.figures.style import RC, legend
from waterline.reporting.kinds import BASE
from waterline.reporting.rows import table_rows
from waterline.reporting.runs import Run
from waterline.runs import BadInput


@mpl.rc_context(RC)
def figure3(
    runs: Sequence[Run],
    split: str = "test",
    curve_split: str = "dev",
    curve_ks: Sequence[int] | None = None,
    estimator: str = "unbiased",
) -> Figure:
    """Draw one row per normalisation: Pass@1, Pass@mid and Pass@high over steps, then the profile.

    Curves read ``curve_split`` (evaluated along training), the profile reads ``split`` at the last
    evaluated step. Without ``curve_ks``, high is half of the responses per question and mid an
    eighth of that, as in SERA's Figure 3 (1, 128, 1024 of 2,048).

    Raises:
        BadInput: when nothing was evaluated along training, or a K is above the responses.
    """
    trained = [run for run in runs if run.method != BASE]
    ks = list(curve_ks) if curve_ks else default_ks(trained, curve_split)
    rows, _ = table_rows(runs, split)
    figure, panels_of = grid(trained, len(ks) + 1)
    for normalisation, groups, panels in panels_of:
        for panel, k in zip(panels, ks, strict=False):
            draw_curves(panel, groups, k, curve_split, estimator)
        shown = [row for row in rows if row.kind.normalisation in ("", normalisation)]
        draw_profile(panels[-1], shown, split, estimator)
    legend(figure, SEEDS_NOTE)
    return figure


def default_ks(runs: Iterable[Run], split: str) -> list[int]:
    """Return 1, mid and high: high half of the fewest responses (a power of 2), mid high/8.

    Raises:
        BadInput: when no run was evaluated on ``split``.
    """
    asked = (run.counts.n[run.counts.split == split].min() for run in runs)
    fewest = min((n for n in asked if not np.isnan(n)), default=None)
    if fewest is None:
        raise BadInput(f"No run is evaluated on {split}: choose another curve_split.")
    high = 2 ** max(int(np.log2(fewest)) - 1, 0)
    return sorted({1, max(high // 8, 1), high})
