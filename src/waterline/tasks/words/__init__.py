"""Grade-school word problems, made on the spot."""

from waterline.tasks.words.task import WordProblems

__all__ = ["WordProblems"]
