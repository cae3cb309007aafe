"""Gradients at shared parameters: cosines and fidelities, with the difference from MaxRL."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

import waterline.reporting.render as render
from waterline.evaluation import Estimate, estimate_of_seeds, within_interval
from waterline.reporting.gradients import UNIT, SharedGradients, of, shared_gradients
from waterline.reporting.kinds import Kind, method_label
from waterline.reporting.runs import Run

DIGITS = 4
UNITS = "batches"
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
    "95% intervals by Student's t, paired by seed, checkpoint and batch. batches: checkpoints of "
    "the runs fixed, from the variance of batches within a checkpoint; runs: from the variance of "
    "the seeds' means. Every seed has its own batches.",
)


@dataclass(frozen=True)
class GradientTable(render.Table):
    """The estimate of each quantity by budget and method, and its difference from ``baseline``.

    ``deltas`` has the methods that can be compared with the baseline at the same budget.
    """

    values: dict[Kind, dict[str, Estimate]]
    deltas: dict[Kind, dict[str, Estimate]]
    baseline: str

    def sections(self, paper: pd.DataFrame | None = None) -> list[render.Section]:
        """Return cosines, their differences, and fidelities; the papers have no such table."""
        found = [_section("Cosine with the gradient of cross-entropy", COSINES, self.values)]
        if self.deltas:
            against = f" − {method_label(self.baseline)}"
            found.append(_section("Differences of the cosine", COSINES, self.deltas, against))
        return [*found, _section("Fidelity κ", FIDELITIES, self.values)]

    def tidy(self) -> pd.DataFrame:
        """Return one line per budget, method and quantity."""
        lines = []
        for kind, values in self.values.items():
            deltas = self.deltas.get(kind, {})
            lines += [
                {
                    "n0": kind.n0,
                    "method": kind.method,
                    "quantity": name,
                    "value": value.value,
                    **render.bound_columns(value),
                    **render.difference_columns(deltas.get(name), self.baseline, UNITS),
                    "seeds": " ".join(str(run.seed) for run in self.runs),
                }
                for name, value in values.items()
            ]
        return pd.DataFrame(lines)


def gradient_table(runs: Iterable[Run], baseline: str = "maxrl") -> GradientTable:
    """Return the table of the finished cross-entropy runs that measured gradients.

    Raises:
        BadInput: when there is none, or the runs measured different things.
    """
    found = shared_gradients(runs)
    scores = {kind: found.quantities(kind) for kind in found.kinds}
    notes = [*NOTES, *found.notes]
    deltas = {}
    for kind, ours in scores.items():
        theirs = scores.get(kind._replace(method=baseline))
        if theirs is not None and kind.method != baseline:
            deltas[kind] = _estimates(ours - theirs, least=-2.0, most=2.0)
        samples = of(found.cosines, kind).query("kind == 'sample'").cosine
        if zero := samples.isna().sum():
            notes.append(
                f"{kind.label}: {zero} of {len(samples)} sampled gradients were zero, which have "
                "no direction, and are left out of the cosines of single samples."
            )
    notes += render.few_seeds(len(found.runs), ", claims are about these checkpoints only.")
    values = {kind: _estimates(quantities) for kind, quantities in scores.items()}
    return GradientTable(
        values,
        deltas,
        baseline,
        runs=found.runs,
        subtitle=_subtitle(found),
        notes=tuple(notes),
    )


def _estimates(
    scores: pd.DataFrame, least: float | None = None, most: float = 1.0
) -> dict[str, Estimate]:
    """The means over the units that every seed has a value of, without what was not measured.

    They lie between ``least`` and ``most``; by default a cosine in [−1, 1], a fidelity in [0, 1].
    """
    found = {}
    for name, column in scores.reindex(columns=[*COSINES, *FIDELITIES]).items():
        values = column.unstack(UNIT).dropna(axis=1)
        if values.size:
            bottom = (-1.0 if name in COSINES else 0.0) if least is None else least
            found[str(name)] = _estimate(values, (bottom, most))
    return found


def _estimate(values: pd.DataFrame, limits: tuple[float, float]) -> Estimate:
    """The mean of a line for each seed and a column for each (checkpoint, batch)."""
    scores = values.to_numpy(np.float64)
    found = estimate_of_seeds(scores.mean(axis=1), limits, UNITS)
    _, checkpoint = np.unique(values.columns.get_level_values("checkpoint"), return_inverse=True)
    if len(np.unique(checkpoint)) == len(checkpoint):
        return found  # one batch at each checkpoint does not show how batches vary
    group = np.arange(len(scores))[:, None] * len(checkpoint) + checkpoint
    low, high = np.clip(within_interval(scores.ravel(), group.ravel())[1:], *limits).tolist()
    return replace(found, units=(low, high))


def _section(
    title: str, names: dict[str, str], rows: dict[Kind, dict[str, Estimate]], against: str = ""
) -> render.Section:
    """The lines of each row, differences where they are ``against`` a method, under ``names``."""
    grid: render.Grid = []
    lines_of = render.difference_lines if against else render.value_lines
    for kind, row in rows.items():
        shown = [row.get(name, Estimate(unit=UNITS)) for name in names]
        grid += lines_of(kind.titled(method_label(kind.method) + against), shown, DIGITS)
    return render.Section(title, ["", "", *names.values()], grid)


def _subtitle(found: SharedGradients) -> str:
    units = found.cosines[UNIT].drop_duplicates()
    steps = sorted(units.checkpoint.unique())
    samples = found.cosines["resample"].max() + 1
    return (
        f"Checkpoints at steps {', '.join(map(str, steps))}; {len(units)} (checkpoint, batch) "
        f"pairs, {samples} resamplings of each; seeds "
        f"{', '.join(str(run.seed) for run in found.runs)}."
    )
