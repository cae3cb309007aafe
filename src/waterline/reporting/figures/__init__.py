"""The papers' figures, drawn from run folders."""

from waterline.reporting.figures.diagnostics import metrics_figure
from waterline.reporting.figures.figure1 import figure1
from waterline.reporting.figures.figure2 import figure2
from waterline.reporting.figures.figure3 import figure3
from waterline.reporting.figures.gradients import gradients_figure
from waterline.reporting.figures.style import save, style

__all__ = ["figure1", "figure2", "figure3", "gradients_figure", "metrics_figure", "save", "style"]
