"""Gradients of every method at shared parameters: the checkpoints of the cross-entropy runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterline.reporting.kinds import Kind, in_order
from waterline.reporting.runs import (
    COSINES,
    FIDELITY,
    Run,
    RunTable,
    finished,
    nothing_to_show,
    one_of_each_seed,
)
from waterline.runs import BadInput

Floats = NDArray[np.float64]
COSINE_KINDS = ("sample", "mean", "expected")
UNIT = ["checkpoint", "batch"]


@dataclass(frozen=True)
class SharedGradients:
    """What the cross-entropy runs measured, with the columns of both files and ``seed``."""

    runs: tuple[Run, ...]
    cosines: pd.DataFrame
    fidelity: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def kinds(self) -> list[Kind]:
        """Budget and method of each row, MaxRL before SERA at every budget."""
        pairs = self.cosines[["n0", "method"]].drop_duplicates()
        return in_order(Kind(n0=int(n0), method=str(m)) for n0, m in pairs.to_numpy())

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return [run.seed for run in self.runs]

    def measured(self, kind: Kind) -> list[str]:
        """Return which of COSINE_KINDS there are; a closed form is not known for every method."""
        there = set(_of(self.cosines, kind).kind)
        return [which for which in COSINE_KINDS if which in there]

    def cosine(self, kind: Kind, which: str) -> Floats:
        """Return the cosine (S, U) of seeds and units (checkpoint, batch).

        ``which`` is 'sample' (the mean over resamplings of their cosines), 'mean' (the cosine
        of their mean) or 'expected' (that of the closed form).
        """
        rows = _of(self.cosines, kind)
        return self._stack(rows[rows.kind == which].groupby(["seed", *UNIT]).cosine.mean())

    def zero(self, kind: Kind) -> tuple[int, int]:
        """Return how many sampled gradients were zero, so that they have no cosine, of how many."""
        samples = _of(self.cosines, kind).query("kind == 'sample'").cosine
        return int(samples.isna().sum()), len(samples)

    def kappa(self, kind: Kind, column: str, statistic: str, *, active: bool) -> Floats:
        """Return a statistic over the prompts of each unit, (S, U); NaN where there is no prompt.

        Without ``active`` over all prompts, else over those that got rollouts.
        """
        rows = _of(self.fidelity, kind)
        groups = rows[rows.active | (not active)].groupby(["seed", *UNIT])[column]
        found: pd.Series[float] = groups.std(ddof=0) if statistic == "sd" else groups.mean()
        return self._stack(found.reindex(self._units(rows)))

    def active(self, kind: Kind) -> Floats:
        """Return the share of active prompts of each unit, (S, U)."""
        return self._stack(_of(self.fidelity, kind).groupby(["seed", *UNIT]).active.mean())

    def _units(self, rows: pd.DataFrame) -> pd.MultiIndex:
        return pd.MultiIndex.from_frame(rows[["seed", *UNIT]].drop_duplicates())

    def _stack(self, column: "pd.Series[float]") -> Floats:
        table = column.unstack(UNIT).reindex(self.seeds).sort_index(axis=1)
        return table.to_numpy(dtype=np.float64)


def shared_gradients(runs: Iterable[Run]) -> SharedGradients:
    """Read ``gradients/`` of the finished cross-entropy runs.

    Raises:
        BadInput: when none has it, or the runs measured different checkpoints, batches or methods.
    """
    done, notes = finished(runs)
    found = [run for run in done if len(COSINES.read(run.path))]
    if not found:
        what = f"No finished cross-entropy run has {COSINES.file}"
        raise nothing_to_show(what, notes, "measure the gradients at its checkpoints first")
    found = one_of_each_seed("Direct CE with gradients", found)
    cosines = _together(found, COSINES)
    fidelity = _together(found, FIDELITY)
    _check_alike(found, cosines, [*UNIT, "method", "n0", "kind"])
    _check_alike(found, fidelity, [*UNIT, "method", "n0"])
    measured = [
        set(map(tuple, frame[["method", "n0"]].to_numpy())) for frame in (cosines, fidelity)
    ]
    if measured[0] != measured[1]:
        raise BadInput(
            f"{found[0].path / 'gradients'} holds cosines and fidelities of different methods: "
            f"{COSINES.again}."
        )
    return SharedGradients(tuple(found), cosines, fidelity, tuple(notes))


def _together(runs: Sequence[Run], table: RunTable) -> pd.DataFrame:
    return pd.concat([table.read(run.path).assign(seed=run.seed) for run in runs])


def _check_alike(runs: Sequence[Run], frame: pd.DataFrame, columns: list[str]) -> None:
    """Every seed has measured every method on the same units, each kind of cosine included."""
    held = frame[["seed", *columns]].drop_duplicates()
    rest = [name for name in columns if name not in UNIT]
    full = len(runs) * len(held[UNIT].drop_duplicates()) * len(held[rest].drop_duplicates())
    if len(held) != full:
        raise BadInput(
            f"The gradients of {', '.join(str(run.path) for run in runs)} are not of the same "
            "checkpoints, batches and methods: measure them again with equal settings."
        )


def _of(frame: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    return frame[(frame.n0 == kind.n0) & (frame.method == kind.method)]
