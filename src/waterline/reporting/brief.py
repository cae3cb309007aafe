"""Short forms for the terminal: one run's evaluations, a table of 80 columns."""

from collections.abc import Sequence

import pandas as pd
from rich.console import Console

import waterline.reporting.render as render
from waterline.evaluation import Estimate, estimate
from waterline.evaluation.intervals import SEEDS_FOR_A_CLAIM
from waterline.reporting.kinds import BASE, method_label, normalisation_label
from waterline.reporting.pass_at_k import PassAtKTable
from waterline.reporting.rows import Row, collect

WIDTH = 80
LABEL = 15  # at least
CELL = 12  # at least: '−18.6, −14.0', of which five stand next to a label on a line of WIDTH
BRACKETS = 14  # from this width of a cell on, an interval has its brackets


def print_compact(console: Console, table: PassAtKTable, title: str) -> None:
    """Print a Pass@K table in 80 columns, at most five K: means, then differences.

    A difference stands over the interval that a claim may rest on and its verdict. A loss
    normalisation that all rows share is named once, above.
    """
    shared = {row.kind.normalisation for row in table.rows if row.method != BASE}
    common = shared.pop() if len(shared) == 1 else ""
    about = [f"Split: {table.split}", f"questions × responses: {table.rows[-1].answers.size}"]
    about += [f"loss: {normalisation_label(common)}"] * bool(common)
    console.print(f"\n[bold]{title}[/bold]")
    console.print("; ".join(about) + ".", highlight=False, markup=False)

    def named(row: Row, name: str) -> str:
        kind = row.kind
        return kind._replace(normalisation="" if common else kind.normalisation).titled(name)

    lines = [
        [named(row, method_label(row.method)), *(render.plain(value.value, 1) for value in values)]
        for row, values in zip(table.rows, table.values, strict=True)
    ]
    # Fewer K leave wider cells; five fill the line.
    cell = max(CELL, min(BRACKETS + 2, (WIDTH - LABEL) // len(table.ks) - 1))
    _print_aligned(console, "Pass@K (%)", table.ks, lines, cell)
    found = [c for c in (*table.deltas, *table.gaps) if c]
    if found:
        lines = [[named(c.row, c.names), *(_stacked(v, cell) for v in c.values)] for c in found]
        _print_aligned(console, "Points", table.ks, lines, cell)
        seeds = min(value.seeds for c in found for value in c.values)
        rests = "seeds and questions" if seeds >= SEEDS_FOR_A_CLAIM else found[0].values[0].unit
        note = f"Below each difference its 95% interval over {rests}"
        if seeds < SEEDS_FOR_A_CLAIM:
            note += f"; with {render.seeds_word(seeds)}, about these checkpoints only"
        console.print(f"{note}.", style="dim", highlight=False)


def print_evaluations(console: Console, frame: pd.DataFrame, split: str, ks: Sequence[int]) -> None:
    """Print Pass@K in percent with its *questions* interval, a row per step evaluated.

    ``frame`` has step, split, prompt and either n, c (a K above the responses is shown as '–') or
    p, top1, with which Pass@K is exact.
    """
    exact = "p" in frame
    lines = []
    for step, rows in frame[frame["split"] == split].groupby("step"):
        asked = rows.set_index("prompt")[["p"] if exact else ["n", "c"]]
        answers = collect({0: asked}, f"Step {step}")
        line = [str(step), answers.size.removesuffix(", exact")]
        line += [f"{100 * rows['top1'].mean():.1f}"] if exact else []
        for k in ks:
            found = estimate(answers.scores(k, "unbiased")) if k <= answers.most else None
            line.append(f"{found.value:.1f} {render.interval(found.units)}" if found else "–")
        lines.append(line)
    size = ["Prompts", "Top-1"] if exact else ["Prompts × responses"]
    grid = render.text_grid(["Step", *size, *(f"Pass@{k}" for k in ks)], lines)
    console.print(grid, highlight=False)
    how = "exact Pass@K; " if exact else ""
    about = f"{split} split; {how}95% intervals over questions, this checkpoint fixed."
    console.print(about, style="dim")


def _stacked(delta: Estimate, cell: int) -> str:
    digits = render.legible(delta, 1)
    bounds, found = render.interval(delta.interval, True, digits), render.verdict(delta)
    if cell < BRACKETS:
        bounds, found = bounds.strip("[]"), found.removeprefix("within ")
    return f"{render.signed(delta.value, digits)}\n{bounds}\n{found}"


def _print_aligned(
    console: Console, title: str, ks: Sequence[int], lines: list[list[str]], cell: int
) -> None:
    grid = render.text_grid([title, *(f"K = {k}" for k in ks)], lines, left=1, padding=(0, 1, 0, 0))
    grid.columns[0].width = max(LABEL, min(28, WIDTH - 1 - len(ks) * (cell + 1)))
    for column in grid.columns[1:]:
        column.min_width = cell
    console.print(grid, highlight=False, markup=False)
    console.print()
