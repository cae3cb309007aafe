"""The two forms of a table: Markdown and the terminal."""

from collections.abc import Iterator

import pandas as pd
from rich.console import Console
from rich.table import Table as RichTable

from waterline.reporting.tables.table import Section, Table

LABEL_WIDTH = 28  # at least, of the columns that name a line; longer labels are wrapped


def markdown(table: Table, title: str, paper: pd.DataFrame | None = None) -> str:
    """Return the whole report as Markdown."""
    parts = [f"# {title}", table.subtitle]
    for section in table.sections(paper):
        parts += [f"## {section.title}", _markdown(section)]
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
            _print(console, section, columns)
        brief |= dict.fromkeys(section.header[j] for j in section.brief)
    if brief:
        text = f"• Shown: {', '.join(brief)}; the files have every column."
        console.print(text, highlight=False, markup=False)
    for note in table.notes:
        console.print(f"• {note}", highlight=False, markup=False)


def _blocks(section: Section, width: int) -> Iterator[list[int]]:
    fixed = section.fixed
    numbers = list(section.brief) or list(range(fixed, len(section.header)))
    cell = 2 + max((len(line[j]) for line in section.lines for j in numbers), default=0)
    size = max(1, (width - LABEL_WIDTH) // cell)
    for start in range(0, max(len(numbers), 1), size):
        yield [*range(fixed), *numbers[start : start + size]]


def _print(console: Console, section: Section, columns: list[int]) -> None:
    rich = RichTable(box=None, header_style="bold", pad_edge=False)
    for j in columns:
        name = section.header[j] or (section.title if j == 0 else "")
        rich.add_column(name, justify="left" if j < 2 else "right", overflow="fold")
    for line in section.lines:
        rich.add_row(*(line[j] for j in columns), style="" if line[0] else "dim")
    console.print(rich, highlight=False, markup=False)
    console.print()


def _markdown(section: Section) -> str:
    rule = ["---" if j < 2 else "--:" for j in range(len(section.header))]
    lines = (section.header, rule, *section.lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
