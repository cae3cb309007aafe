"""The metrics of one reinforcement learning step, under the names of the glossary."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pandas as pd

from waterline.allocation import Plan, fidelity
from waterline.rollouts.ranks import Ranks
from waterline.training.step import StepRecord

_NONE = float("nan")


class Allocated(Protocol):
    """What a step gave its B candidates and what they brought: (B,) arrays."""

    @property
    def ids(self) -> np.ndarray: ...
    @property
    def p_hat(self) -> np.ndarray: ...
    @property
    def known(self) -> np.ndarray: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def trials(self) -> np.ndarray: ...
    @property
    def successes(self) -> np.ndarray: ...


def allocation_frame(record: Allocated) -> pd.DataFrame:
    """A row for each candidate: prompt, p_hat (NaN where nothing is known) and n rollouts."""
    p_hat = np.where(record.known, record.p_hat, np.nan)
    return pd.DataFrame({"prompt": record.ids, "p_hat": p_hat, "n": record.trials})


def allocation_metrics(record: Allocated, seconds: float) -> dict[str, float]:
    """Groups and counts of a step that took ``seconds``.

    κ is that of the estimates, over active prompts with one; NaN while nothing is known.
    """
    trials, successes = record.trials, record.successes
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
        "allocation/waterline": float(not record.plan.uniform),
        "allocation/count_min": float(counts.min()) if len(counts) else _NONE,
        "allocation/count_median": float(np.median(counts)) if len(counts) else _NONE,
        "allocation/count_max": float(counts.max()) if len(counts) else _NONE,
        "allocation/kappa_min": float(kappa.min()) if len(kappa) else _NONE,
        "allocation/kappa_mean": float(kappa.mean()) if len(kappa) else _NONE,
        "allocation/kappa_spread": float(kappa.max() - kappa.min()) if len(kappa) else _NONE,
    }


def step_metrics(
    record: StepRecord, totals: dict[str, int], ranks: Ranks, seconds: float
) -> dict[str, float]:
    """Metrics of a step; ``totals`` counts rollouts, tokens and skipped steps of the run so far."""
    batch = record.batch
    tokens = int(batch.length.sum())
    seen = ranks.gather(record.diagnostics)
    norms = seen[0].grad_norms
    totals["rollouts"] += len(batch.node)
    totals["tokens"] += tokens
    totals["skipped"] += not norms
    return {
        "reward/mean": float(batch.rollouts.leaves().reward.mean()) if len(batch.node) else _NONE,
        "loss/value": sum(d.loss for d in seen),
        **allocation_metrics(record, seconds),
        "policy/entropy": sum(d.entropy for d in seen) / max(1, sum(d.tokens for d in seen)),
        "response/length": float(batch.length.double().mean()),
        "grad/norm": float(np.mean(norms)) if norms else _NONE,
        "grad/skipped": float(totals["skipped"]),
        "engine/logp_gap": max(d.logp_gap for d in seen),
        "rollouts/tokens": float(tokens),
        "rollouts/total": float(totals["rollouts"]),
        "rollouts/total_tokens": float(totals["tokens"]),
        **{f"time/{stage}": value for stage, value in record.seconds.items()},
        "time/step": seconds,
    }
