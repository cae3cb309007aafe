"""Draws docs/idea.png: one budget of rollouts, spent evenly and by the waterline.

python docs/idea.py
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from waterline.allocation import WaterlineAllocator, fidelity
from waterline.reporting.figures.style import RC, style

N0 = 16
# A batch from hard prompts to easy ones; the bounds of the allocator do not matter in this range.
P = np.geomspace(0.01, 0.6, 32)
LABELS = {"maxrl": f"the same for all, {N0} each", "sera": "by the waterline (SERA)"}


def draw() -> Figure:
    """Left, the counts of both allocations; right, the κ(p, N) that they give each prompt."""
    counts = {
        "maxrl": np.full(P.shape, N0),
        "sera": WaterlineAllocator(n_min=2, n_max=64, u0=0.05).allocate(P, n0=N0),
    }
    with mpl.rc_context(RC):
        figure = Figure(figsize=(8, 3), layout="constrained")
        left, right = figure.subplots(1, 2)
        for method, n in counts.items():
            look = style(method) | {"label": LABELS[method], "marker": "o", "markersize": 3}
            left.plot(P, n, **look)
            right.plot(P, fidelity(P, n), **look)
        left.set(
            title=f"{N0 * len(P)} rollouts, spent in two ways", ylabel="Rollouts of the prompt, N"
        )
        right.set(
            title="Share of each prompt's gradient that arrives",
            ylabel="κ(p, N)",
            ylim=(0, 1.05),
        )
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_xticks([0.01, 0.03, 0.1, 0.3], ["1%", "3%", "10%", "30%"])
            axes.minorticks_off()
            axes.set_xlabel("Success probability p of the prompt (hard → easy)")
        left.set_ylim(bottom=0)
        left.legend()
    return figure


if __name__ == "__main__":
    with mpl.rc_context(RC):
        draw().savefig(Path(__file__).with_suffix(".png"))
