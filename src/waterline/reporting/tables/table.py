"""What every table has, so that it can be printed and written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pandas as pd

from waterline.reporting.run import Run
from waterline.reporting.tables.text import Grid


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


class Table(Protocol):
    """Sections to read, a tidy frame to compute with, and the runs that both came from."""

    @property
    def subtitle(self) -> str:
        """What the whole table is about, e.g. 'Split: test.'."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """One sentence each: how to read the numbers, what was left out."""
        ...

    @property
    def runs(self) -> Sequence[Run]:
        """The runs shown."""
        ...

    def sections(self, paper: pd.DataFrame | None = None) -> list[Section]:
        """Return the grids, with the paper's values beside ours where given."""
        ...

    def tidy(self) -> pd.DataFrame:
        """Return one line per value."""
        ...
