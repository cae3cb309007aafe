"""How well a policy does on held-out prompts: the estimators need NumPy alone."""

from importlib import import_module
from typing import Any

from waterline.evaluation.best_at_k import best_at_k_bootstrap
from waterline.evaluation.exact_pass_at_k import exact_pass_at_k
from waterline.evaluation.interval import Interval
from waterline.evaluation.paired_bootstrap import paired_bootstrap
from waterline.evaluation.pass_at_k import pass_at_k
from waterline.evaluation.questions_interval import questions_interval
from waterline.evaluation.runs_interval import runs_interval

# Public names that need more than NumPy, and the module each comes from.
_HEAVY: dict[str, str] = {
    "CountsStore": "waterline.evaluation.counts",
    "EvaluationSettings": "waterline.evaluation.evaluator",
    "ProbabilityStore": "waterline.evaluation.probabilities",
    "evaluate": "waterline.evaluation.evaluator",
}

__all__ = [
    "Interval",
    "best_at_k_bootstrap",
    "exact_pass_at_k",
    "paired_bootstrap",
    "pass_at_k",
    "questions_interval",
    "runs_interval",
]


def __getattr__(name: str) -> Any:
    if name in _HEAVY:
        return getattr(import_module(_HEAVY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
