"""Responses in; verdicts, and from them rewards, out."""

from waterline.rewards.maze import verify_maze
from waterline.rewards.verdict import Verdict
from waterline.rewards.verify_math import MathVerdict, verify_math, verify_math_many

__all__ = ["MathVerdict", "Verdict", "verify_math", "verify_math_many", "verify_maze"]
