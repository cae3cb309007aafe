"""Responses in; success, reward and verdict of each out."""

from waterline.rewards.answers.gold import check_gold
from waterline.rewards.label import LabelVerifier
from waterline.rewards.math import MathVerdict, MathVerifier, verify_math, verify_math_many
from waterline.rewards.maze import MazeVerifier, verify_maze
from waterline.rewards.verifier import Judgement, Verdict, Verifier, judgement

__all__ = [
    "Judgement",
    "LabelVerifier",
    "MathVerdict",
    "MathVerifier",
    "MazeVerifier",
    "Verdict",
    "Verifier",
    "check_gold",
    "judgement",
    "verify_math",
    "verify_math_many",
    "verify_maze",
]
