"""Gradients at shared parameters: cosines and fidelities, with the difference from MaxRL."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterline.evaluation import Estimate, estimate
from waterline.evaluation.intervals import SEEDS_FOR_A_CLAIM
from waterline.reporting.gradients import UNIT, SharedGradients, shared_gradients
from waterline.reporting.kinds import Kind, method_label
from waterline.reporting.render import (
    Grid,
    Section,
    bound_columns,
    difference_columns,
    difference_lines,
    seeds_word,
    value_lines,
)
from waterline.reporting.runs import Run

Floats = NDArray[np.float64]
DIGITS = 4
UNITS = "batches"
NOTHING = Estimate(unit=UNITS)
COSINES = {
    "cosine_sample": "Single sample",
    "cosine_mean": "Mean of samples",
    "cosine_expected": "Expected",
}
FIDELITIES = {
    "kappa_before_mean": "κ(p, N₀): mean",
    "kappa_before_sd": "κ(p, N₀): sd",
    "kappa_after_mean": "κ(p, N): mean",
    "kappa_after_sd": "κ(p, N): sd",
    "active": "Active prompts",
}


NOTES = (
    "Gradients of the losses of each method at the checkpoints of the cross-entropy runs, on the "
    "same batches; cosine with the gradient of cross-entropy over the full batch (SERA, Eq. 47).",
    "Single sample: one sampling of the batch's rollouts, averaged over resamplings; "
    "Mean of samples: that of the mean of the R resampled gradients, whose noise is divided by √R; "
    "Expected: that of the expected gradient in closed form, the bias alone: "
    "(1/B) Σ κ(p, N) ∇ log p over active prompts, for counts that do not depend on the batch's own "
    "outcomes.",
    "κ(p, N₀) over all prompts at uniform counts; κ(p, N) over active prompts at the counts given; "
    "sd: over the prompts of a batch.",
    "95% intervals. batches: checkpoints of the runs fixed, (checkpoint, batch) pairs resampled; "
    "runs: seeds, then the pairs, resampled, paired by seed, checkpoint and batch.",
)


@dataclass(frozen=True)
class GradientTable:
    """``values[i]`` and ``deltas[i]`` by quantity belong to ``kinds[i]``.

    A kind's difference is from the method ``baseline`` at the same budget, {} where there is none.
    """

    kinds: tuple[Kind, ...]
    values: tuple[dict[str, Estimate], ...]
    deltas: tuple[dict[str, Estimate], ...]
    baseline: str
    runs: tuple[Run, ...]
    subtitle: str
    notes: tuple[str, ...]

    def sections(self, paper: pd.DataFrame | None = None) -> list[Section]:
        """Return cosines, their differences, and fidelities; the papers have no such table."""
        heads = ["", "", *COSINES.values()]
        found = [Section("Cosine with the gradient of cross-entropy", heads, self._values(COSINES))]
        if any(self.deltas):
            found.append(Section("Differences of the cosine", heads, self._differences(COSINES)))
        heads = ["", "", *FIDELITIES.values()]
        return [*found, Section("Fidelity κ", heads, self._values(FIDELITIES))]

    def tidy(self) -> pd.DataFrame:
        """Return one line per budget, method and quantity."""
        return pd.DataFrame(
            {
                "n0": kind.n0,
                "method": kind.method,
                "quantity": name,
                "value": value.value,
                **bound_columns(value),
                **difference_columns(delta.get(name), self.baseline, UNITS),
                "seeds": " ".join(str(run.seed) for run in self.runs),
            }
            for kind, values, delta in zip(self.kinds, self.values, self.deltas, strict=True)
            for name, value in values.items()
        )

    def _values(self, names: Iterable[str]) -> Grid:
        return [
            line
            for kind, values in zip(self.kinds, self.values, strict=True)
            for line in value_lines(kind.label, [values.get(n, NOTHING) for n in names], DIGITS)
        ]

    def _differences(self, names: Iterable[str]) -> Grid:
        grid = []
        for kind, delta in zip(self.kinds, self.deltas, strict=True):
            pair = f"{method_label(kind.method)} − {method_label(self.baseline)}"
            if delta:
                shown = [delta.get(name, NOTHING) for name in names]
                grid += difference_lines(kind.titled(pair), shown, DIGITS)
        return grid


def gradient_table(runs: Iterable[Run], baseline: str = "maxrl") -> GradientTable:
    """Return the table of the finished cross-entropy runs that measured gradients.

    Raises:
        BadInput: when there is none, or the runs measured different things.
    """
    found = shared_gradients(runs)
    kinds = found.kinds
    scores = [_quantities(found, kind) for kind in kinds]
    deltas: list[dict[str, Estimate]] = []
    notes = list(found.notes)
    for kind, ours in zip(kinds, scores, strict=True):
        other = kind._replace(method=baseline)
        if kind == other or other not in kinds:
            deltas.append({})
            continue
        theirs = scores[kinds.index(other)]
        deltas.append({n: _estimate(ours[n] - theirs[n]) for n in ours if n in theirs})
    for kind in kinds:
        zero, samples = found.zero(kind)
        if zero:
            notes.append(
                f"{kind.label}: {zero} of {samples} sampled gradients were zero, which have no "
                "direction, and are left out of the cosines of single samples."
            )
    if len(found.runs) < SEEDS_FOR_A_CLAIM:
        seeds = seeds_word(len(found.runs))
        notes.append(f"With {seeds}, claims are about these checkpoints only.")
    return GradientTable(
        kinds=tuple(kinds),
        values=tuple({name: _estimate(array) for name, array in s.items()} for s in scores),
        deltas=tuple(deltas),
        baseline=baseline,
        runs=found.runs,
        subtitle=_subtitle(found),
        notes=(*NOTES, *notes),
    )


def _quantities(found: SharedGradients, kind: Kind) -> dict[str, Floats]:
    cosines = {f"cosine_{which}": found.cosine(kind, which) for which in found.measured(kind)}
    kappas = {
        f"{column}_{name}": found.kappa(kind, column, name, active=column == "kappa_after")
        for column in ("kappa_before", "kappa_after")
        for name in ("mean", "sd")
    }
    return cosines | kappas | {"active": found.active(kind)}


def _estimate(scores: Floats) -> Estimate:
    """The mean over the units that every seed has a value of."""
    return estimate(scores[:, ~np.isnan(scores).any(axis=0)], UNITS, 1.0)


def _subtitle(found: SharedGradients) -> str:
    units = found.cosines[UNIT].drop_duplicates()
    steps = sorted(units.checkpoint.unique())
    samples = found.cosines["resample"].max() + 1
    return (
        f"Checkpoints at steps {', '.join(map(str, steps))}; {len(units)} (checkpoint, batch) "
        f"pairs, {samples} resamplings of each; seeds {', '.join(map(str, found.seeds))}."
    )
