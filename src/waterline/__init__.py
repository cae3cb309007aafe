"""Waterline: how many rollouts should each prompt get, and how should they become a gradient?

The rooms of this package stand in the order of one training step; see the README. Importing
``waterline`` imports none of them, so that the pure core can be used with NumPy alone.
"""

__version__ = "0.1.0"
