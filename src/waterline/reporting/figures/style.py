"""The look of every figure: one colour and one dash per method, safe for colour-blind readers."""

import io
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from waterline.reporting.kinds import BASE, METHOD_LABELS, Kind, method_label, rank
from waterline.runs import atomic_write

# Okabe–Ito; dashes tell the lines apart in grey as well.
_STYLES: dict[str, tuple[str, Any]] = {
    BASE: ("#7F7F7F", (0, (1, 1.5))),
    "ce": ("#000000", "solid"),
    "maxrl": ("#0072B2", (0, (5, 1.5))),
    "sera": ("#D55E00", "solid"),
    "grpo": ("#009E73", (0, (4, 1.5, 1, 1.5))),
    "dr_grpo": ("#56B4E9", (0, (3, 1))),
    "rloo": ("#CC79A7", (0, (6, 1, 1, 1, 1, 1))),
    "pkpo": ("#E69F00", (0, (2, 1))),
    "reinforce": ("#000000", (0, (1, 1))),
}
_SPARE = ("#882255", "#44AA99", "#999933", "#AA4499", "#332288", "#117733")
RC: Any = {  # matplotlib types the keys one by one
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
}


def style(method: str) -> dict[str, Any]:
    """Return colour, dash and label of a method; the same in every figure."""
    spare = (_SPARE[zlib.crc32(method.encode()) % len(_SPARE)], "solid")
    colour, dash = _STYLES.get(method, spare)
    return {"color": colour, "linestyle": dash, "label": method_label(method)}


def budget_styles(kinds: Iterable[Kind]) -> dict[Kind, dict[str, Any]]:
    """Return looks that tell budgets apart: the smaller one, the paler and thinner its line."""
    budgets = sorted({kind.n0 for kind in kinds if kind.n0 is not None}, reverse=True)
    looks = {}
    for kind in kinds:
        depth = 0.5 ** (budgets.index(kind.n0) if kind.n0 is not None else 0)
        look = style(kind.method)
        pale = tuple(1 - depth * (1 - part) for part in to_rgb(look["color"]))  # mixed with white
        own = {"color": pale, "linewidth": 1.0 + 0.6 * depth, "label": kind.label}
        looks[kind] = look | own
    return looks


def in_order(methods: Iterable[str]) -> list[str]:
    """Return the distinct methods in the order of every legend."""
    return sorted(set(methods), key=lambda method: rank(METHOD_LABELS, method))


def draw_seeds(
    axes: Axes, x: NDArray[np.float64], y: NDArray[np.float64], method: str, **extra: Any
) -> None:
    """Draw the mean over seeds of ``y`` (S, X), each seed as a thin line and their range."""
    look = {"linewidth": 1.6} | style(method) | extra
    if len(y) > 1:
        axes.fill_between(x, y.min(0), y.max(0), color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(x, y.T, color=look["color"], linewidth=0.5, alpha=0.5)
    axes.plot(x, y.mean(0), **look)


def log2_axis(axes: Axes, ks: Sequence[int]) -> None:
    """Give ``axes`` a logarithmic axis with K written out."""
    axes.set_xscale("log", base=2)
    shown = ks if len(ks) <= 7 else ks[:: -(-len(ks) // 6)]
    axes.set_xticks(shown, [str(k) for k in shown])
    axes.minorticks_off()


def lettered(panels: Iterable[Axes], titles: Sequence[str]) -> None:
    """Title the panels '(a) …', '(b) …'."""
    for letter, panel, title in zip("abcdefghijkl", panels, titles, strict=False):
        panel.set_title(f"({letter}) {title}", loc="left", fontweight="bold")


def legend(figure: Figure, note: str) -> None:
    """Put one legend with every method, and how to read the lines, below the panels."""
    found: dict[Any, Artist] = {}
    for panel in figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=max(len(found), 1),
        title=note,
        title_fontsize=8,
    )


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem.png`` and ``stem.pdf``, where they are others, and return their paths."""
    written = [stem.with_suffix(suffix) for suffix in (".png", ".pdf")]
    with mpl.rc_context(RC):
        for path in written:
            content = io.BytesIO()
            when = {"CreationDate": None} if path.suffix == ".pdf" else None  # the same bytes again
            figure.savefig(content, format=path.suffix[1:], metadata=when)
            if not path.exists() or path.read_bytes() != content.getvalue():
                atomic_write(path, content.getvalue())
    return written
