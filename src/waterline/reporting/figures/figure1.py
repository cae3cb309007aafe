"""Figure 1: how finite rollouts scale gradients, and where the waterline puts the budget."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from waterline.allocation import WaterlineAllocator, fidelity
from waterline.reporting.figures.style import RC, style

Floats = NDArray[np.float64]
# One hard and one easy prompt, whose log-success gradients point in different directions.
PAIR = np.array([0.02, 0.5])
ANGLES = np.deg2rad([80.0, 10.0])
UNITS = np.stack([np.cos(ANGLES), np.sin(ANGLES)])
NOTE: Any = {"textcoords": "offset points", "color": "#666666", "fontsize": 8}


@mpl.rc_context(RC)
def figure1(n0: int = 16, n_max: int = 64, batch: int = 32) -> Figure:
    """Draw (a) κ(p, N) at fixed N, (b) the shift of the batch gradient, (c) both allocations.

    Everything is computed by the package's own ``fidelity`` and ``WaterlineAllocator``; the
    prompts are illustrative (SERA, Figure 1).
    """
    allocator = WaterlineAllocator(n_min=2, n_max=n_max, u0=0.05)
    figure = Figure(figsize=(10.5, 3.3), layout="constrained")
    curves, shift, counts = figure.subplots(1, 3)
    _curves(curves, (n0 // 4, n0, n_max))
    _shift(shift, n0, allocator)
    _counts(counts, n0, np.geomspace(0.005, 0.9, batch), allocator)
    return figure


def direction(p: Floats, n: NDArray[np.int64]) -> Floats:
    """Return the mean of unit prompt gradients ``UNITS``, each scaled by κ(p, n) (Eq. 3)."""
    return np.asarray((UNITS * fidelity(p, n)).mean(axis=1), dtype=np.float64)


def angle(vector: Floats) -> float:
    """Return the angle of a vector in degrees."""
    return float(np.rad2deg(np.arctan2(vector[1], vector[0])))


def _curves(axes: Axes, counts: tuple[int, ...]) -> None:
    p = np.geomspace(1e-3, 0.9, 400)
    for n, shade in zip(counts, ("#9ECAE1", "#0072B2", "#08306B"), strict=True):
        axes.plot(p, fidelity(p, np.full(p.shape, n)), color=shade, label=f"N = {n}", linewidth=1.8)
    axes.set(xscale="log", xlabel="Success probability p", ylabel="Fidelity κ(p, N)")
    axes.set_title("(a) Success-dependent scaling")
    axes.legend(loc="lower right")


def _shift(axes: Axes, n0: int, allocator: WaterlineAllocator) -> None:
    for tip, p in zip(UNITS.T, PAIR, strict=True):
        _arrow(axes, tip, "#999999", 1.0)
        axes.annotate(f"∇log p, p = {p:g}", tuple(tip), xytext=(8, 4), ha="center", **NOTE)
    maxrl, sera = style("maxrl"), style("sera")
    waterline = allocator.allocate(PAIR, n0=n0)
    for label, colour, mean in (
        ("target", "black", UNITS.mean(axis=1)),
        (maxrl["label"], maxrl["color"], direction(PAIR, np.full(2, n0))),
        (sera["label"], sera["color"], direction(PAIR, waterline)),
    ):
        axes.plot([], [], color=colour, label=f"{label}, {angle(mean):.0f}°")
        _arrow(axes, mean, colour, 2.2)
    axes.set(xlim=(-0.05, 1.3), ylim=(-0.05, 1.2), aspect="equal")
    axes.set(xlabel="Gradient, first coordinate", ylabel="Gradient, second coordinate")
    axes.set_title("(b) Direction of the expected batch gradient")
    axes.legend(loc="upper right")


def _counts(axes: Axes, n0: int, p: Floats, allocator: WaterlineAllocator) -> None:
    waterline = allocator.allocate(p, n0=n0)
    for method, n in (("maxrl", np.full(p.shape, n0)), ("sera", waterline)):
        axes.plot(p, n, marker="o", markersize=3, linewidth=1.2, **style(method))
    axes.axhline(allocator.n_max, color="#999999", linewidth=0.8)
    limit = rf"$N_{{\max}}$ = {allocator.n_max}"
    axes.annotate(limit, (p[-1], allocator.n_max), xytext=(0, -10), ha="right", **NOTE)
    axes.set(xscale="log", ylim=(0, allocator.n_max * 1.08))
    axes.set(xlabel="Success probability p of the prompt", ylabel="Rollouts N")
    axes.set_title(f"(c) Allocation of {len(p)} × {n0} rollouts")
    axes.legend(loc="center right")


def _arrow(axes: Axes, tip: Floats, colour: str, width: float) -> None:
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=(tip[0], tip[1]), xytext=(0, 0), arrowprops=look)
