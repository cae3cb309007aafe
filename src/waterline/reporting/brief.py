"""Short forms for the terminal: one run's evaluations, one difference, a table of 80 columns."""

from collections.abc import Iterable, Sequence

import pandas as pd
from rich.console import Console
from rich.table import Table

from waterline.evaluation import Estimate, estimate
from waterline.evaluation.intervals import SEEDS_FOR_A_CLAIM
from waterline.reporting.kinds import BASE, method_label, normalisation_label
from waterline.reporting.pass_at_k import PassAtKTable
from waterline.reporting.render import interval, legible, plain, seeds_word, signed, verdict
from waterline.reporting.rows import Row, collect, difference, table_rows
from waterline.reporting.runs import Run
from waterline.runs import BadInput

WIDTH = 80
LABEL = 15  # at least
CELL = 12  # at least: '−18.6, −14.0', of which five stand next to a label on a line of WIDTH
BRACKETS = 14  # from this width of a cell on, an interval has its brackets


def compare(
    runs_a: Iterable[Run],
    runs_b: Iterable[Run],
    k: int,
    split: str = "test",
    estimator: str = "unbiased",
) -> str:
    """Return e.g. 'SERA − MaxRL at Pass@64: +2.1 points [−0.3, +4.4] (runs): within noise'.

    Both are read at their last evaluated step and paired by seed and question. The interval is
    the *runs* interval from three seeds on; below, it is the *questions* interval and the sentence
    says that it speaks of these checkpoints only.

    Raises:
        BadInput: when either side is not one evaluated method, or they share no seed.
    """
    (a, left_a), (b, left_b) = _only(runs_a, split), _only(runs_b, split)
    delta = difference(a, b, k, estimator)
    names = f"{method_label(a.method)} − {method_label(b.method)}"
    digits = legible(delta, 1)
    text = (
        f"{names} at Pass@{k}: {signed(delta.value, digits)} points "
        f"{interval(delta.interval, True, digits)} ({delta.basis}): {verdict(delta)}"
    )
    if delta.seeds < SEEDS_FOR_A_CLAIM:
        text += f"; with {seeds_word(delta.seeds)}, about these checkpoints only"
    return ". ".join([text, *left_a, *left_b]).removesuffix(".")


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
        (named(row, method_label(row.method)), [plain(value.value, 1) for value in values])
        for row, values in zip(table.rows, table.values, strict=True)
    ]
    # Fewer K leave wider cells; five fill the line.
    cell = max(CELL, min(BRACKETS + 2, (WIDTH - LABEL) // len(table.ks) - 1))
    _print_aligned(console, "Pass@K (%)", table.ks, lines, cell)
    found = [c for c in (*table.deltas, *table.gaps) if c]
    if found:
        lines = [(named(c.row, c.names), [_stacked(v, cell) for v in c.values]) for c in found]
        _print_aligned(console, "Points", table.ks, lines, cell)
        seeds = min(value.seeds for c in found for value in c.values)
        rests = "seeds and questions" if seeds >= SEEDS_FOR_A_CLAIM else found[0].values[0].unit
        note = f"Below each difference its 95% interval over {rests}"
        if seeds < SEEDS_FOR_A_CLAIM:
            note += f"; with {seeds_word(seeds)}, about these checkpoints only"
        console.print(f"{note}.", style="dim", highlight=False)


def print_counts(console: Console, counts: pd.DataFrame, split: str, ks: Sequence[int]) -> None:
    """Print Pass@K in percent with its *questions* interval, a row per step evaluated.

    ``counts`` has step, split, prompt, n, c; a K above the responses is shown as '–'.
    """
    _print_steps(console, counts, split, ["n", "c"], ks, "Prompts × responses")


def print_probabilities(
    console: Console, probabilities: pd.DataFrame, split: str, ks: Sequence[int]
) -> None:
    """Print exact Pass@K in percent with its *questions* interval, a row per step evaluated.

    ``probabilities`` has step, split, prompt, p, top1.
    """
    _print_steps(console, probabilities, split, ["p"], ks, "Prompts", "exact Pass@K; ")


def _only(runs: Iterable[Run], split: str) -> tuple[Row, list[str]]:
    rows, notes = table_rows(runs, split)
    rows = [row for row in rows if row.method != BASE]
    if len(rows) > 1:
        raise BadInput(
            f"The runs to compare are of {len(rows)} kinds ({'; '.join(r.label for r in rows)}): "
            "pass the runs of one method under one setting."
        )
    return rows[0], [note.removesuffix(".") for note in notes if note.startswith("Left out")]


def _stacked(delta: Estimate, cell: int) -> str:
    digits = legible(delta, 1)
    bounds, found = interval(delta.interval, True, digits), verdict(delta)
    if cell < BRACKETS:
        bounds, found = bounds.strip("[]"), found.removeprefix("within ")
    return f"{signed(delta.value, digits)}\n{bounds}\n{found}"


def _print_aligned(
    console: Console, title: str, ks: Sequence[int], lines: list[tuple[str, list[str]]], cell: int
) -> None:
    grid = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    label = max(LABEL, min(28, WIDTH - 1 - len(ks) * (cell + 1)))
    grid.add_column(title, width=label, overflow="fold")
    for k in ks:
        grid.add_column(f"K = {k}", justify="right", min_width=cell, overflow="fold")
    for name, cells in lines:
        grid.add_row(name, *cells)
    console.print(grid, highlight=False, markup=False)
    console.print()


def _print_steps(
    console: Console,
    frame: pd.DataFrame,
    split: str,
    columns: list[str],
    ks: Sequence[int],
    size: str,
    how: str = "",
) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    top1 = ["Top-1"] if "top1" in frame else []
    for name in ("Step", size, *top1, *(f"Pass@{k}" for k in ks)):
        table.add_column(name, justify="right")
    for step, rows in frame[frame["split"] == split].groupby("step"):
        answers = collect({0: rows.set_index("prompt")[columns]}, f"Step {step}")
        cells = [f"{100 * rows['top1'].mean():.1f}"] if top1 else []
        for k in ks:
            found = estimate(answers.scores(k, "unbiased")) if k <= answers.most else None
            cells.append(f"{found.value:.1f} {interval(found.units)}" if found else "–")
        table.add_row(str(step), answers.size.removesuffix(", exact"), *cells)
    console.print(table, highlight=False)
    about = f"{split} split; {how}95% intervals over questions, this checkpoint fixed."
    console.print(about, style="dim")
