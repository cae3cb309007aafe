"""Metrics of one reinforcement learning step, under the names of the glossary."""

from __future__ import annotations

import numpy as np
import pandas as pd

from waterline.allocation import fidelity
from waterline.training.step import StepRecord

_NONE = float("nan")


def allocation_frame(record: StepRecord) -> pd.DataFrame:
    """A row for each candidate: prompt, p_hat (NaN where nothing is known) and n rollouts."""
    p_hat = np.where(record.known, record.p_hat, np.nan)
    return pd.DataFrame({"prompt": record.ids, "p_hat": p_hat, "n": record.outcomes.trials})


def allocation_metrics(record: StepRecord, seconds: float) -> dict[str, float]:
    """Groups and counts of a step that took ``seconds``.

    κ is that of the estimates, over active prompts with one; NaN while nothing is known.
    """
    trials, successes = record.outcomes.trials, record.outcomes.successes
    active = record.plan.active
    mixed = (successes > 0) & (successes < trials)
    counts = trials[active]
    estimated = active & record.known
    kappa = fidelity(record.p_hat[estimated], trials[estimated])
    return {
        "groups/mixed_of_active": float(mixed[active].mean()) if active.any() else _NONE,
        "groups/mixed_of_batch": float(mixed.mean()),
        "groups/mixed_per_second": float(mixed.sum()) / seconds,
        "allocation/active_fraction": float(active.mean()),
        "allocation/waterline": float(not np.isnan(record.plan.water_level)),
        "allocation/count_min": float(counts.min()) if len(counts) else _NONE,
        "allocation/count_median": float(np.median(counts)) if len(counts) else _NONE,
        "allocation/count_max": float(counts.max()) if len(counts) else _NONE,
        "allocation/kappa_min": float(kappa.min()) if len(kappa) else _NONE,
        "allocation/kappa_mean": float(kappa.mean()) if len(kappa) else _NONE,
        "allocation/kappa_spread": float(kappa.max() - kappa.min()) if len(kappa) else _NONE,
    }


def accuracy_metrics(record: StepRecord) -> dict[str, float]:
    """Accuracy of the estimates against exact probabilities (SERA, Appendix D.2.1, Table 3).

    Mean absolute error, and Pearson's r, NaN where either side is constant; nothing where the task
    has no exact probabilities.
    """
    if record.p is None:
        return {}
    a, b = record.p_hat - record.p_hat.mean(), record.p - record.p.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return {
        "success/mae": float(np.abs(record.p_hat - record.p).mean()),
        "success/pearson": float(a @ b / scale) if scale > 0 else _NONE,
    }
