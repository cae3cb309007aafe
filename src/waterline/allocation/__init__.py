"""How many rollouts each prompt of a batch gets (NumPy alone)."""

from waterline.allocation.bounded import bounded_counts
from waterline.allocation.checks import LEAST_P, MOST_P
from waterline.allocation.dars import DARSAllocator
from waterline.allocation.fidelity import fidelity, mixed_probability
from waterline.allocation.pilot import PilotWaterlineAllocator
from waterline.allocation.plan import Plan
from waterline.allocation.rounds import Allocator, OneShotAllocator, Outcomes, Request
from waterline.allocation.uniform import NoRollouts, UniformAllocator
from waterline.allocation.waterline import WaterlineAllocator

__all__ = [
    "LEAST_P",
    "MOST_P",
    "Allocator",
    "DARSAllocator",
    "NoRollouts",
    "OneShotAllocator",
    "Outcomes",
    "PilotWaterlineAllocator",
    "Plan",
    "Request",
    "UniformAllocator",
    "WaterlineAllocator",
    "bounded_counts",
    "fidelity",
    "mixed_probability",
]
