"""Gradients of every method at shared parameters: the checkpoints of the cross-entropy runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

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

    def quantities(self, kind: Kind) -> pd.DataFrame:
        """Return what the table shows, a column each, by seed, checkpoint and batch.

        ``cosine_sample`` is the mean over resamplings of their cosines, ``cosine_mean`` the cosine
        of their mean, ``cosine_expected`` that of the closed form, which not every method has. The
        fidelities after allocation are over the prompts that got rollouts; NaN where none did.
        """
        cosines, prompts = of(self.cosines, kind), of(self.fidelity, kind)
        by = ["seed", *UNIT]
        before = prompts.groupby(by).kappa_before
        after = prompts[prompts.active].groupby(by).kappa_after
        kinds = cosines.groupby("kind")
        found = {f"cosine_{name}": rows.groupby(by).cosine.mean() for name, rows in kinds}
        for name, kappa in (("before", before), ("after", after)):
            found |= {f"kappa_{name}_mean": kappa.mean(), f"kappa_{name}_sd": kappa.std(ddof=0)}
        return pd.DataFrame(found | {"active": prompts.groupby(by).active.mean()})


def of(frame: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Return the rows of one method at one budget."""
    return frame[(frame.n0 == kind.n0) & (frame.method == kind.method)]


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
    cosines = _together(found, COSINES, ["method", "n0", "kind"])
    fidelity = _together(found, FIDELITY, ["method", "n0"])
    compared = [set(frame.groupby(["method", "n0"]).groups) for frame in (cosines, fidelity)]
    if compared[0] != compared[1]:
        raise BadInput(
            f"{found[0].path / 'gradients'} holds cosines and fidelities of different methods: "
            f"{COSINES.again}."
        )
    return SharedGradients(tuple(found), cosines, fidelity, tuple(notes))


def _together(runs: Sequence[Run], table: RunTable, measures: list[str]) -> pd.DataFrame:
    """The rows of all seeds, each of which has made every measure on the same units."""
    frame = pd.concat([table.read(run.path).assign(seed=run.seed) for run in runs])
    held = frame[["seed", *UNIT, *measures]].drop_duplicates()
    full = len(runs) * len(held[UNIT].drop_duplicates()) * len(held[measures].drop_duplicates())
    if len(held) != full:
        raise BadInput(
            f"The gradients of {', '.join(str(run.path) for run in runs)} are not of the same "
            "checkpoints, batches and methods: measure them again with equal settings."
        )
    return frame
