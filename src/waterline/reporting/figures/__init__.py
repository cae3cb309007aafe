"""The papers' figures, drawn from run folders."""

from waterline.reporting.figures.figure1 import figure1
from waterline.reporting.figures.figure3 import figure3
from waterline.reporting.figures.panels import metrics_figure
from waterline.reporting.figures.style import save, style

__all__ = ["figure1", "figure3", "metrics_figure", "save", "style"]
