"""How a table is written: its numbers as text, Markdown, the terminal, and its three files."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table as RichTable

from waterline.evaluation import Estimate
from waterline.evaluation.intervals import SEEDS_FOR_A_CLAIM
from waterline.reporting.runs import Run
from waterline.runs import atomic_write, provenance

Grid = list[list[str]]
LABEL_WIDTH = 28  # at least, of the columns that name a line; longer labels are wrapped


@dataclass(frozen=True, slots=True)
class Section:
    """A titled grid of text.

    The first ``fixed`` columns name a line; the others hold numbers, and a terminal that is too
    narrow gets them in blocks. A line whose first cell is empty belongs to the one above it.
    ``brief`` holds the columns of numbers that a terminal shows where it does not show all.
    """

    title: str
    header: Sequence[str]
    lines: Grid
    fixed: int = 2
    brief: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class Table(ABC):
    """Sections to read, a tidy frame to compute with, and the runs that both came from.

    ``subtitle`` says what the whole table is about, e.g. 'Split: test.'; ``notes`` are a sentence
    each: how to read the numbers, what was left out.
    """

    runs: tuple[Run, ...]
    subtitle: str
    notes: tuple[str, ...]

    @abstractmethod
    def sections(self, paper: pd.DataFrame | None = None) -> list[Section]:
        """Return the grids, with the paper's values next to ours where given."""

    @abstractmethod
    def tidy(self) -> pd.DataFrame:
        """Return one line per value."""


def signed(value: float, digits: int = 1) -> str:
    """Return '+2.1' or '−2.1', with a true minus sign, or '–' for NaN."""
    return "–" if math.isnan(value) else f"{value:+z.{digits}f}".replace("-", "−")


def plain(value: float, digits: int = 2) -> str:
    """Return '53.14', with a true minus sign, or '–' for NaN."""
    return "–" if math.isnan(value) else f"{value:z.{digits}f}".replace("-", "−")


def amount(value: float) -> str:
    """Return '102,400', or '–' for NaN."""
    return "–" if math.isnan(value) else f"{value:,.0f}"


def interval(bounds: tuple[float, float], sign: bool = False, digits: int = 1) -> str:
    """Return '[53.1, 58.0]', signed for differences, or '–' where it was not measured."""
    if any(map(math.isnan, bounds)):
        return "–"
    low, high = (signed(b, digits) if sign else plain(b, digits) for b in bounds)
    return f"[{low}, {high}]"


def verdict(delta: Estimate) -> str:
    """Return 'ahead', 'behind' or 'within noise', by the interval that a claim may rest on."""
    if math.isnan(delta.value) or any(map(math.isnan, delta.interval)):
        return "–"
    if not delta.excludes_zero:
        return "within noise"
    return "ahead" if delta.value > 0 else "behind"


def legible(delta: Estimate, digits: int) -> int:
    """Return the digits, at least ``digits``, at which a difference that counts is not zero.

    Both the value and the bounds that the verdict rests on must show it.
    """
    least = min(map(abs, (delta.value, *delta.interval)))
    if not delta.excludes_zero or least == 0 or round(least, digits) != 0:
        return digits
    return max(digits, math.ceil(-math.log10(least)))


def seeds_word(seeds: int) -> str:
    """Return '1 seed' or '3 seeds'."""
    return f"{seeds} seed{'s' * (seeds > 1)}"


def few_seeds(seeds: int, claim: str) -> list[str]:
    """Return 'With 1 seed' and ``claim`` where a claim on methods needs more seeds."""
    return [f"With {seeds_word(seeds)}{claim}"] if seeds < SEEDS_FOR_A_CLAIM else []


def paper_value(paper: pd.DataFrame, **cell: object) -> float:
    """Return the paper's value of the ``cell`` (None: the column is empty), or NaN."""
    found = paper
    for column, value in cell.items():
        found = found[found[column].isna() if value is None else found[column] == value]
    return float(found.value.iloc[0]) if len(found) else math.nan


def value_lines(
    label: str, values: Sequence[Estimate], digits: int = 2, paper: Sequence[float] | None = None
) -> Grid:
    """Return a row's lines: the means, the paper's values where given, and both intervals."""
    lines = [[label, "mean", *(plain(v.value, digits) for v in values)]]
    if paper is not None:
        lines.append(["", "paper", *(plain(value, digits) for value in paper)])
    unit = values[0].unit
    lines.append(["", unit, *(interval(v.units, digits=digits - 1) for v in values)])
    lines.append(["", "runs", *(interval(v.runs, digits=digits - 1) for v in values)])
    return lines


def difference_lines(label: str, deltas: Sequence[Estimate], digits: int = 2) -> Grid:
    """Return the lines of a difference, the last with the verdict at each column.

    A difference that is ahead or behind has digits enough to show it.
    """
    unit, basis = deltas[0].unit, deltas[0].basis
    values = [signed(d.value, legible(d, digits)) for d in deltas]
    bounds = [legible(d, digits - 1) for d in deltas]
    return [
        [label, "difference", *values],
        ["", unit, *(interval(d.units, True, n) for d, n in zip(deltas, bounds, strict=True))],
        ["", "runs", *(interval(d.runs, True, n) for d, n in zip(deltas, bounds, strict=True))],
        ["", f"by {basis}", *(verdict(d) for d in deltas)],
    ]


def bound_columns(value: Estimate, prefix: str = "") -> dict[str, object]:
    """Return both intervals as columns of a tidy frame, e.g. ``questions_low``."""
    pairs = {value.unit: value.units, "runs": value.runs}
    return {
        f"{prefix}{name}_{side}": bound
        for name, pair in pairs.items()
        for side, bound in zip(("low", "high"), pair, strict=True)
    }


def difference_columns(
    delta: Estimate | None,
    other: str,
    unit: str = "questions",
    names: tuple[str, str, str] = ("baseline", "delta", ""),
) -> dict[str, object]:
    """Return a difference from ``other`` as columns of a tidy frame, empty where there is none.

    ``names`` are those of the columns for the other method and for the value, and the prefix of
    the columns that say what may be claimed.
    """
    against, name, prefix = names
    found = delta or Estimate(unit=unit)
    return {
        against: other if delta else "",
        name: found.value,
        **bound_columns(found, f"{name}_"),
        f"{prefix}claim_basis": found.basis if delta else "",
        f"{prefix}excludes_zero": found.excludes_zero if delta else "",
    }


def markdown(table: Table, title: str, paper: pd.DataFrame | None = None) -> str:
    """Return the whole report as Markdown."""
    parts = [f"# {title}", table.subtitle]
    for section in table.sections(paper):
        rule = ["---" if j < 2 else "--:" for j in range(len(section.header))]
        lines = (section.header, rule, *section.lines)
        grid = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts += [f"## {section.title}", grid]
    parts += ["## Notes", "\n".join(f"- {note}" for note in table.notes)]
    return "\n\n".join(parts) + "\n"


def print_table(
    console: Console, table: Table, title: str, paper: pd.DataFrame | None = None
) -> None:
    """Print the report; a section too wide for the terminal is split, as in the papers.

    Of a section with many columns only the brief ones are printed, and a line says so.
    """
    console.print(f"\n[bold]{title}[/bold]")
    console.print(table.subtitle, highlight=False, markup=False)
    brief: dict[str, None] = {}
    for section in table.sections(paper):
        for columns in _blocks(section, console.width):
            header = [section.header[j] or section.title * (j == 0) for j in columns]
            lines = [[line[j] for j in columns] for line in section.lines]
            console.print(text_grid(header, lines, left=2), highlight=False, markup=False)
            console.print()
        brief |= dict.fromkeys(section.header[j] for j in section.brief)
    if brief:
        print_notes(console, [f"Shown: {', '.join(brief)}; the files have every column."])
    print_notes(console, table.notes)


def text_grid(
    header: Sequence[str],
    lines: Grid,
    left: int = 0,
    padding: tuple[int, int] | tuple[int, int, int, int] = (0, 1),
) -> RichTable:
    """Return a grid without rules; the first ``left`` columns are flush left, the others right."""
    grid = RichTable(box=None, header_style="bold", pad_edge=False, padding=padding)
    for j, name in enumerate(header):
        grid.add_column(name, justify="left" if j < left else "right", overflow="fold")
    for line in lines:
        grid.add_row(*line, style="" if line[0] else "dim")
    return grid


def print_notes(console: Console, notes: Sequence[str]) -> None:
    """Print a line for each note."""
    for note in notes:
        console.print(f"• {note}", highlight=False, markup=False)


def write_table(
    table: Table, title: str, stem: Path, root: Path, paper: pd.DataFrame | None = None
) -> list[Path]:
    """Write ``stem.md``, ``.csv`` and ``.provenance.json`` and return their paths.

    ``root`` is the folder from which the provenance names the runs. A table that is there already,
    of the same runs, is left as it is.
    """
    written = [stem.with_suffix(s) for s in (".md", ".csv", ".provenance.json")]
    tidy = table.tidy()
    tidy.insert(0, "experiment", stem.parent.name)
    tidy.insert(0, "table", stem.name.removeprefix("table"))
    runs = {run.path: run for run in table.runs}
    made = {p.relative_to(root).as_posix(): _made(run) for p, run in sorted(runs.items())}
    texts = [markdown(table, title, paper), tidy.to_csv(index=False, float_format="%.6g")]
    if not _holds(written, texts, made):
        record = {"report": provenance(), "runs": made}
        for path, text in zip(written, [*texts, json.dumps(record, indent=2) + "\n"], strict=True):
            atomic_write(path, text)
    return written


def _holds(written: Sequence[Path], texts: Sequence[str], made: dict[str, Any]) -> bool:
    """Whether the files are there with these texts, made of these runs."""
    try:
        held = [path.read_text(encoding="utf-8") for path in written]
        return held[:-1] == texts and json.loads(held[-1])["runs"] == made
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _made(run: Run) -> dict[str, Any]:
    logged = "time/step" in run.metrics
    return {
        "seconds": float(run.metrics["time/step"].sum()) if logged else None,
        "status": run.document("status"),
        "provenance": run.document("provenance"),
    }


def _blocks(section: Section, width: int) -> Iterator[list[int]]:
    fixed = section.fixed
    numbers = list(section.brief) or list(range(fixed, len(section.header)))
    cell = 2 + max((len(line[j]) for line in section.lines for j in numbers), default=0)
    size = max(1, (width - LABEL_WIDTH) // cell)
    for start in range(0, max(len(numbers), 1), size):
        yield [*range(fixed), *numbers[start : start + size]]
