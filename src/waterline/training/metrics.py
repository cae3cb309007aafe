"""The metrics of one reinforcement learning step, under the names of the glossary."""

from __future__ import annotations

import numpy as np

from waterline.allocation import fidelity
from waterline.training.ranks import Ranks
from waterline.training.step import StepRecord


def step_metrics(
    record: StepRecord, totals: dict[str, int], ranks: Ranks, seconds: float
) -> dict[str, float]:
    """Metrics of a step; ``totals`` counts rollouts, tokens and skipped steps of the run so far.

    κ is that of the estimates, over active prompts with one; NaN while nothing is known.
    """
    trials, successes = record.trials, record.successes
    active = record.plan.active
    mixed = (successes > 0) & (successes < trials)
    counts = trials[active]
    estimated = active & record.known
    kappa = fidelity(record.p_hat[estimated], trials[estimated])
    batch = record.batch
    tokens = int(batch.length.sum())
    seen = ranks.gather(record.diagnostics)
    norms = seen[0].grad_norms
    totals["rollouts"] += len(batch.node)
    totals["tokens"] += tokens
    totals["skipped"] += not norms
    none = float("nan")
    return {
        "reward/mean": float(batch.rollouts.leaves().reward.mean()) if len(batch.node) else none,
        "loss/value": sum(d.loss for d in seen),
        "groups/mixed_of_active": float(mixed[active].mean()) if active.any() else none,
        "groups/mixed_of_batch": float(mixed.mean()),
        "groups/mixed_per_second": float(mixed.sum()) / seconds,
        "allocation/active_fraction": float(active.mean()),
        "allocation/waterline": float(not record.plan.uniform),
        "allocation/count_min": float(counts.min()) if len(counts) else none,
        "allocation/count_median": float(np.median(counts)) if len(counts) else none,
        "allocation/count_max": float(counts.max()) if len(counts) else none,
        "allocation/kappa_min": float(kappa.min()) if len(kappa) else none,
        "allocation/kappa_mean": float(kappa.mean()) if len(kappa) else none,
        "allocation/kappa_spread": float(kappa.max() - kappa.min()) if len(kappa) else none,
        "policy/entropy": sum(d.entropy for d in seen) / max(1, sum(d.tokens for d in seen)),
        "response/length": float(batch.length.double().mean()),
        "grad/norm": float(np.mean(norms)) if norms else none,
        "grad/skipped": float(totals["skipped"]),
        "engine/logp_gap": max(d.logp_gap for d in seen),
        "rollouts/tokens": float(tokens),
        "rollouts/total": float(totals["rollouts"]),
        "rollouts/total_tokens": float(totals["tokens"]),
        **{f"time/{stage}": value for stage, value in record.seconds.items()},
        "time/step": seconds,
    }
