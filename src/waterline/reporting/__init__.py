"""From run folders to tables and figures."""

from waterline.reporting.command import report
from waterline.reporting.compare import compare
from waterline.reporting.counts_table import print_counts
from waterline.reporting.metrics import METRICS, Metric, glossary, metric
from waterline.reporting.readers import Run, finished, load_runs
from waterline.reporting.render import markdown, print_table
from waterline.reporting.tables import PassAtKTable, pass_at_k_table

__all__ = [
    "METRICS",
    "Metric",
    "PassAtKTable",
    "Run",
    "compare",
    "finished",
    "glossary",
    "load_runs",
    "markdown",
    "metric",
    "pass_at_k_table",
    "print_counts",
    "print_table",
    "report",
]
