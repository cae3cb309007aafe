"""The papers' tables, made from run folders."""

from waterline.reporting.tables.estimators import EstimatorTable, estimator_table
from waterline.reporting.tables.gradient_table import gradient_table
from waterline.reporting.tables.gradients import GradientTable
from waterline.reporting.tables.pass_at_k import PassAtKTable
from waterline.reporting.tables.pass_at_k_table import pass_at_k_table
from waterline.reporting.tables.render import markdown, print_table
from waterline.reporting.tables.table import Section, Table
from waterline.reporting.tables.write import write_table

__all__ = [
    "EstimatorTable",
    "GradientTable",
    "PassAtKTable",
    "Section",
    "Table",
    "estimator_table",
    "gradient_table",
    "markdown",
    "pass_at_k_table",
    "print_table",
    "write_table",
]
