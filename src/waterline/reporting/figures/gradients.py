"""Gradients at shared parameters: their cosines by checkpoint, and κ before and after."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from waterline.reporting.figures.style import RC, legend, lettered, style
from waterline.reporting.gradients import of, shared_gradients
from waterline.reporting.runs import Run
from waterline.runs import BadInput

NOTE = (
    "left: mean cosine of single samples, band: 10–90% of them, ×: of the expected gradient\n"
    "right: κ(p, N) at the counts given, a point per prompt, 0 where inactive"
)
BAND = (10, 90)


@mpl.rc_context(RC)
def gradients_figure(runs: Sequence[Run], checkpoint: int | None = None) -> Figure:
    """Draw a row per N₀: left the cosine with the CE gradient by checkpoint, right κ against p.

    ``checkpoint`` is the step that the right shows, by default the middle one.

    Raises:
        BadInput: when no gradients were measured, or not at ``checkpoint``.
    """
    found = shared_gradients(runs)
    steps = np.unique(found.fidelity.checkpoint.to_numpy()).tolist()
    at = steps[len(steps) // 2] if checkpoint is None else checkpoint
    if at not in steps:
        raise BadInput(
            f"No gradients were measured at step {at}: choose checkpoint among "
            f"{', '.join(map(str, steps))}."
        )
    budgets = sorted({kind.n0 or 0 for kind in found.kinds})
    figure = Figure(figsize=(7.6, 2.9 * len(budgets) + 0.5), layout="constrained")
    axes = figure.subplots(len(budgets), 2, squeeze=False)
    shown = found.fidelity[found.fidelity.checkpoint == at]
    titles = []
    for (left, right), n0 in zip(axes, budgets, strict=True):
        kinds = [kind for kind in found.kinds if kind.n0 == n0]
        for kind in kinds:
            _cosines(left, of(found.cosines, kind), kind.method)
        _fidelities(right, {kind.method: of(shown, kind) for kind in kinds})
        titles += [f"Cosine, N₀ = {n0}", f"Fidelity, N₀ = {n0}, step {at}"]
    lettered(axes.ravel(), titles)
    legend(figure, NOTE)
    return figure


def _cosines(panel: Axes, rows: pd.DataFrame, method: str) -> None:
    look = style(method)
    samples = rows[rows.kind == "sample"].groupby("checkpoint").cosine
    steps = samples.mean().index.to_numpy(dtype=np.float64)
    low, high = (samples.quantile(q / 100).to_numpy() for q in BAND)
    panel.fill_between(steps, low, high, color=look["color"], alpha=0.15, linewidth=0)
    panel.plot(steps, samples.mean(), linewidth=1.6, marker="o", markersize=3, **look)
    expected = rows[rows.kind == "expected"].groupby("checkpoint").cosine.mean()
    dots: dict[str, Any] = {"color": look["color"], "linewidth": 0.7, "linestyle": ":"}
    panel.plot(expected.index, expected, marker="x", markersize=5, **dots)
    panel.set(xlabel="Step of the cross-entropy run", ylabel="Cosine with the CE gradient")


def _fidelities(panel: Axes, prompts: dict[str, pd.DataFrame]) -> None:
    """A point for each prompt and method; the line is that of the uniform counts."""
    dots: dict[str, Any] = {"markersize": 3, "markeredgewidth": 0, "alpha": 0.5, "rasterized": True}
    for method, rows in prompts.items():
        panel.plot(rows.p, rows.kappa_after, "o", color=style(method)["color"], **dots)
    before = pd.concat(prompts.values()).sort_values("p")
    panel.plot(before.p, before.kappa_before, color="black", linewidth=1, label="κ(p, N₀)")
    panel.set(xscale="log", ylim=(-0.03, 1.03), xlabel="Success probability p", ylabel="Fidelity κ")
