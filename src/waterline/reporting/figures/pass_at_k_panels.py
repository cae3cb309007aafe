"""The panels that figures 2 and 3 share: Pass@K along training, and the final profile."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from waterline.reporting.figures.series import pass_at_k_series
from waterline.reporting.figures.style import draw_seeds, log2_axis
from waterline.reporting.kinds import Kind
from waterline.reporting.rows import Row
from waterline.reporting.run import Run

Looks = Mapping[Kind, Mapping[str, Any]]
SEEDS_NOTE = "thick: mean over seeds; thin: single seeds; band: their range"


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
