"""One grid of text for a Pass@K table, and its two forms: Markdown and the terminal."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as RichTable

from waterline.reporting.names import method_label, row_label
from waterline.reporting.scores import Estimate
from waterline.reporting.tables import PassAtKTable

Grid = list[list[str]]
LABEL_WIDTH, CELL_WIDTH = 34, 14


def signed(value: float, digits: int = 1) -> str:
    """Return '+2.1' or '−2.1', with a true minus sign."""
    return f"{value:+z.{digits}f}".replace("-", "−")


def interval(bounds: tuple[float, float], sign: bool = False) -> str:
    """Return '[53.1, 58.0]', signed for differences, or '–' where it was not measured."""
    if any(map(math.isnan, bounds)):
        return "–"
    low, high = (signed(b) if sign else f"{b:z.1f}" for b in bounds)
    return f"[{low}, {high}]"


def verdict(delta: Estimate) -> str:
    """Return 'ahead', 'behind' or 'within noise', by the interval that a claim may rest on."""
    if not delta.excludes_zero:
        return "within noise"
    return "ahead" if delta.value > 0 else "behind"


def value_grid(table: PassAtKTable, paper: pd.DataFrame | None = None) -> Grid:
    """Return the lines of Pass@K: label, what the line holds, one cell per K."""
    grid = []
    for row, values in zip(table.rows, table.values, strict=True):
        grid.append([row.label, "mean", *(f"{v.value:z.2f}" for v in values)])
        if paper is not None:
            cells = [_paper(paper, row.normalisation, row.method, k) for k in table.ks]
            grid.append(["", "paper", *cells])
        grid.append(["", "questions", *(interval(v.questions) for v in values)])
        grid.append(["", "runs", *(interval(v.runs) for v in values)])
    return grid


def delta_grid(table: PassAtKTable) -> Grid:
    """Return the lines of the differences from the baseline, each with its verdict."""
    grid = []
    for row, other, deltas in zip(table.rows, table.baselines, table.deltas, strict=True):
        if other is None or deltas is None:
            continue
        name = f"{method_label(row.method)} − {method_label(other.method)}"
        label = row_label(row.normalisation, name, row.settings)
        grid.append([label, "difference", *(signed(d.value, 2) for d in deltas)])
        grid.append(["", "questions", *(interval(d.questions, True) for d in deltas)])
        grid.append(["", "runs", *(interval(d.runs, True) for d in deltas)])
        grid.append(["", f"by {deltas[0].basis}", *(verdict(d) for d in deltas)])
    return grid


BUDGET_HEADER = [
    "Row",
    "Seeds",
    "Step",
    "Questions × responses",
    "Rollouts",
    "Tokens",
    "Waterline steps",
]


def budget_grid(table: PassAtKTable) -> Grid:
    """Return what each row spent (means over its seeds) and on what it was evaluated."""
    return [
        [
            row.label,
            ", ".join(map(str, row.answers.seeds)),
            str(row.step),
            f"{len(row.answers.prompts):,} × {_span(row.answers.n)}",
            _amount(spent.rollouts),
            _amount(spent.tokens),
            "–" if math.isnan(spent.waterline) else f"{100 * spent.waterline:.1f}%",
        ]
        for row, spent in zip(table.rows, table.budgets, strict=True)
    ]


def markdown(table: PassAtKTable, title: str, paper: pd.DataFrame | None = None) -> str:
    """Return the whole report as Markdown."""
    ks = [f"K = {k}" for k in table.ks]
    parts = [f"# {title}", f"Split: {table.split}."]
    parts += ["## Pass@K (%)", _markdown(["", "", *ks], value_grid(table, paper))]
    if any(table.deltas):
        parts += ["## Differences (points)", _markdown(["", "", *ks], delta_grid(table))]
    parts += ["## Budgets (per run)", _markdown(BUDGET_HEADER, budget_grid(table))]
    parts += ["## Notes", "\n".join(f"- {note}" for note in table.notes)]
    return "\n\n".join(parts) + "\n"


def print_table(
    console: Console, table: PassAtKTable, title: str, paper: pd.DataFrame | None = None
) -> None:
    """Print the report; a table too wide for the terminal is split by K, as in the papers."""
    console.print(f"\n[bold]{title}[/bold] ({table.split} split)")
    for columns in _blocks(len(table.ks), console.width):
        ks = [str(table.ks[j]) for j in columns]
        _print(console, ["Pass@K (%)", "", *ks], _pick(value_grid(table, paper), columns))
    for columns in _blocks(len(table.ks), console.width) if any(table.deltas) else ():
        ks = [str(table.ks[j]) for j in columns]
        _print(console, ["Difference (points)", "", *ks], _pick(delta_grid(table), columns))
    _print(console, BUDGET_HEADER, budget_grid(table))
    for note in table.notes:
        console.print(f"• {note}", highlight=False, markup=False)


def _blocks(count: int, width: int) -> Iterator[range]:
    size = max(1, (width - LABEL_WIDTH) // CELL_WIDTH)
    return (range(start, min(start + size, count)) for start in range(0, count, size))


def _pick(grid: Grid, columns: range) -> Grid:
    return [[*line[:2], *(line[2 + j] for j in columns)] for line in grid]


def _print(console: Console, header: list[str], grid: Grid) -> None:
    rich = RichTable(box=None, header_style="bold", pad_edge=False)
    for j, name in enumerate(header):
        rich.add_column(name, justify="left" if j < 2 else "right", overflow="fold")
    for line in grid:
        mean = line[1] in ("mean", "difference")
        rich.add_row(*line, style="" if mean or header is BUDGET_HEADER else "dim")
    console.print(rich, highlight=False, markup=False)
    console.print()


def _markdown(header: list[str], grid: Grid) -> str:
    rule = ["---" if j < 2 else "--:" for j in range(len(header))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *grid))


def _paper(paper: pd.DataFrame, normalisation: str, method: str, k: int) -> str:
    found = paper[
        (paper.normalisation.fillna("") == normalisation)
        & (paper.method == method)
        & (paper.k == k)
        & (paper.metric == "pass_at_k")
    ]
    return f"{found.value.iloc[0]:.2f}" if len(found) else "–"


def _span(n: NDArray[np.int64]) -> str:
    low, high = int(n.min()), int(n.max())
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _amount(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:,.0f}"
