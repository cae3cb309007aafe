"""From the gradients that cross-entropy runs measured to their table."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from waterline.reporting.gradients import UNIT, SharedGradients, shared_gradients
from waterline.reporting.kinds import Kind
from waterline.reporting.run import Run
from waterline.reporting.scores import SEEDS_FOR_A_CLAIM, Estimate, estimate
from waterline.reporting.tables.gradients import GradientTable

Floats = NDArray[np.float64]
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
        seeds = len(found.runs)
        notes.append(
            f"With {seeds} seed{'s' * (seeds > 1)}, claims are about these checkpoints only."
        )
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
    before = {
        f"kappa_before_{name}": found.kappa(kind, "kappa_before", name, active=False)
        for name in ("mean", "sd")
    }
    after = {
        f"kappa_after_{name}": found.kappa(kind, "kappa_after", name, active=True)
        for name in ("mean", "sd")
    }
    return cosines | before | after | {"active": found.active(kind)}


def _estimate(scores: Floats) -> Estimate:
    """The mean over the units that every seed has a value of."""
    return estimate(scores[:, ~np.isnan(scores).any(axis=0)], "batches", 1.0)


def _subtitle(found: SharedGradients) -> str:
    units = found.cosines[UNIT].drop_duplicates()
    steps = sorted(units.checkpoint.unique())
    samples = found.cosines["resample"].max() + 1
    return (
        f"Checkpoints at steps {', '.join(map(str, steps))}; {len(units)} (checkpoint, batch) "
        f"pairs, {samples} resamplings of each; seeds {', '.join(map(str, found.seeds))}."
    )
