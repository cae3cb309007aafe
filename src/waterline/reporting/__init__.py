"""From run folders to tables and figures."""

from waterline.reporting.brief import print_compact, print_evaluations
from waterline.reporting.command import report
from waterline.reporting.estimator_table import estimator_table
from waterline.reporting.gradient_table import gradient_table
from waterline.reporting.gradients import shared_gradients
from waterline.reporting.pass_at_k import PassAtKTable, pass_at_k_table
from waterline.reporting.render import markdown, print_table
from waterline.reporting.responses import print_questions, print_responses
from waterline.reporting.runs import Run, finished, load_runs

__all__ = [
    "PassAtKTable",
    "Run",
    "estimator_table",
    "finished",
    "gradient_table",
    "load_runs",
    "markdown",
    "pass_at_k_table",
    "print_compact",
    "print_evaluations",
    "print_questions",
    "print_responses",
    "print_table",
    "report",
    "shared_gradients",
]
