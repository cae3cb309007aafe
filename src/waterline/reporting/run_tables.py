"""The tables of a run folder, and what must hold in each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from waterline.runs import BadInput


@dataclass(frozen=True, slots=True)
class TableOfRun:
    """A parquet file: its place in the run folder, its columns, what must differ and what hold.

    ``once`` are the columns that no two rows share, and ``twice`` says what two such rows are;
    ``wrong`` marks rows that cannot be, and ``what`` says what they hold.
    """

    file: str
    columns: tuple[str, ...]
    once: tuple[str, ...]
    twice: str
    wrong: Callable[[pd.DataFrame], "pd.Series[bool]"]
    what: str
    again: str = "evaluate this run again"

    def read(self, run: Path) -> pd.DataFrame:
        """Return the table of the run folder ``run``, empty where it lacks.

        Raises:
            BadInput: when a column lacks, a row appears twice, or a value cannot be.
        """
        file = run / self.file
        if not file.exists():
            return pd.DataFrame(columns=list(self.columns))
        frame = pd.read_parquet(file)
        if lacking := [name for name in self.columns if name not in frame]:
            raise BadInput(f"{file} lacks {', '.join(lacking)}: {self.again}.")
        if frame.duplicated(list(self.once)).any():
            raise BadInput(f"{file} holds {self.twice}: {self.again}.")
        if self.wrong(frame).any():
            raise BadInput(f"{file} holds {self.what}: {self.again}.")
        return frame


_QUESTION = ("step", "split", "prompt")
COUNTS = TableOfRun(
    "eval/counts.parquet",
    (*_QUESTION, "n", "c"),
    _QUESTION,
    "a question twice for one step",
    lambda t: (t.c < 0) | (t.c > t.n),
    "counts c outside 0..n",
)
PROBABILITIES = TableOfRun(
    "eval/probabilities.parquet",
    (*_QUESTION, "p", "top1"),
    _QUESTION,
    "a question twice for one step",
    lambda t: ~t.p.between(0, 1),
    "probabilities p outside [0, 1]",
)
_BATCH = ("checkpoint", "batch", "method", "n0")
COSINES = TableOfRun(
    "gradients/cosines.parquet",
    (*_BATCH, "kind", "resample", "cosine"),
    (*_BATCH, "kind", "resample"),
    "a cosine twice",
    lambda t: t.cosine.abs() > 1 + 1e-9,  # NaN: a gradient that is zero has no direction
    "cosines outside [−1, 1]",
    "measure this run's gradients again",
)
FIDELITY = TableOfRun(
    "gradients/fidelity.parquet",
    (*_BATCH, "prompt", "p", "n", "kappa_before", "kappa_after", "active"),
    (*_BATCH, "prompt"),
    "a prompt twice for one batch",
    lambda t: ~(t.kappa_before.between(0, 1) & t.kappa_after.between(0, 1)),
    "fidelities κ outside [0, 1]",
    "measure this run's gradients again",
)
