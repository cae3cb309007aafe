"""From run folders to tables and figures."""

from waterline.reporting.brief import print_compact, print_evaluations
from waterline.reporting.command import report
from waterline.reporting.estimator_table import EstimatorTable, estimator_table
from waterline.reporting.gradient_table import GradientTable, gradient_table
from waterline.reporting.gradients import SharedGradients, shared_gradients
from waterline.reporting.pass_at_k import PassAtKTable, pass_at_k_table
from waterline.reporting.render import markdown, print_table
from waterline.reporting.runs import Run, finished, load_runs
from waterline.runs.metrics import METRICS, Metric, glossary, metric

__all__ = [
    "METRICS",
    "EstimatorTable",
    "GradientTable",
    "Metric",
    "PassAtKTable",
    "Run",
    "SharedGradients",
    "estimator_table",
    "finished",
    "glossary",
    "gradient_table",
    "load_runs",
    "markdown",
    "metric",
    "pass_at_k_table",
    "print_compact",
    "print_evaluations",
    "print_table",
    "report",
    "shared_gradients",
]
