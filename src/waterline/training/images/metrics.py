"""The metrics of one step on images, under the names of the glossary."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from waterline.training.images.step import ImageRecord
from waterline.training.metrics import allocation_metrics


def sampling_metrics(
    record: ImageRecord, totals: dict[str, int], seconds: float
) -> dict[str, float]:
    """Metrics of a step that sampled; ``totals`` counts the rollouts of the run so far."""
    rollouts = int(record.trials.sum())
    totals["rollouts"] += rollouts
    return {
        "reward/mean": float(record.successes.sum()) / max(1, rollouts),
        **allocation_metrics(record, seconds),
        **estimate_metrics(record.p_hat, record.p),
        "rollouts/total": float(totals["rollouts"]),
    }


def estimate_metrics(p_hat: NDArray[np.float64], p: NDArray[np.float64]) -> dict[str, float]:
    """Accuracy of estimates (B,) against exact probabilities (SERA, Appendix D.2.1, Table 3).

    Mean absolute error, and Pearson's r, NaN where either side is constant.
    """
    a, b = p_hat - p_hat.mean(), p - p.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return {
        "success/mae": float(np.abs(p_hat - p).mean()),
        "success/pearson": float(a @ b / scale) if scale > 0 else float("nan"),
    }
