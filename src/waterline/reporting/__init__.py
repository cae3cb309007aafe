"""From run folders to tables and figures."""

from waterline.reporting.command import report
from waterline.reporting.compare import compare
from waterline.reporting.evaluation_table import print_counts, print_probabilities
from waterline.reporting.gradients import SharedGradients, shared_gradients
from waterline.reporting.readers import finished, load_runs
from waterline.reporting.run import Run
from waterline.reporting.tables import (
    EstimatorTable,
    GradientTable,
    PassAtKTable,
    estimator_table,
    gradient_table,
    markdown,
    pass_at_k_table,
    print_table,
)
from waterline.runs.metrics import METRICS, Metric, glossary, metric

__all__ = [
    "METRICS",
    "EstimatorTable",
    "GradientTable",
    "Metric",
    "PassAtKTable",
    "Run",
    "SharedGradients",
    "compare",
    "estimator_table",
    "finished",
    "glossary",
    "gradient_table",
    "load_runs",
    "markdown",
    "metric",
    "pass_at_k_table",
    "print_counts",
    "print_probabilities",
    "print_table",
    "report",
    "shared_gradients",
]
