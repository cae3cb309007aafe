"""Mathematical questions from public data sets or files of the same form."""

from waterline.tasks.mathematics.sources import DATA_SETS, DataSet, is_of
from waterline.tasks.mathematics.task import MathProblems

__all__ = ["DATA_SETS", "DataSet", "MathProblems", "is_of"]
