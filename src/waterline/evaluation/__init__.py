"""How well a policy does on held-out prompts: the estimators need NumPy alone."""

from importlib import import_module
from typing import Any

from waterline.evaluation.intervals import (
    Estimate,
    Interval,
    estimate,
    estimate_of_seeds,
    paired_bootstrap,
    questions_interval,
    runs_interval,
    within_interval,
)
from waterline.evaluation.pass_at_k import best_at_k_bootstrap, exact_pass_at_k, pass_at_k

# Public names that need more than NumPy, and the module each comes from.
_HEAVY: dict[str, str] = {
    "CountsStore": "waterline.evaluation.stores",
    "Evaluation": "waterline.evaluation.subject",
    "ExactEvaluation": "waterline.evaluation.exact",
    "ProbabilityStore": "waterline.evaluation.stores",
    "ResponseStore": "waterline.evaluation.responses",
    "require_split": "waterline.evaluation.subject",
    "SampledEvaluation": "waterline.evaluation.sampled",
    "Subject": "waterline.evaluation.subject",
}

__all__ = [
    "Estimate",
    "Interval",
    "best_at_k_bootstrap",
    "estimate",
    "estimate_of_seeds",
    "exact_pass_at_k",
    "paired_bootstrap",
    "pass_at_k",
    "questions_interval",
    "runs_interval",
    "within_interval",
]


def __getattr__(name: str) -> Any:
    if name in _HEAVY:
        return getattr(import_module(_HEAVY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
