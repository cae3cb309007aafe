"""Counts that no estimate changes: the same for every prompt, or none at all."""

from typing import ClassVar

import numpy as np

from waterline.allocation.checks import vector
from waterline.allocation.plan import Plan
from waterline.allocation.rounds import Allocator, OneShotAllocator, Request


class UniformAllocator(OneShotAllocator):
    """N_q = N0 for every prompt, weight 1: the allocation of GRPO, RLOO and MaxRL.

    The estimates are not read, only counted, so they may be NaN. A budget that B does not divide
    gives the first rows one rollout more; N0 in the weights N0/N_q is then the mean budget/B.
    """


class NoRollouts(Allocator):
    """N_q = 0 for every prompt: for a method that needs no response, such as cross-entropy."""

    fixed_budget: ClassVar[bool] = False
    reads_budget: ClassVar[bool] = False  # n0 is no setting of a run that samples nothing

    def start(self, request: Request) -> Plan:
        """Zero counts and weights for B prompts, whatever the budget."""
        nothing = np.zeros(len(vector("p", request.p)), dtype=np.int64)
        active = nothing > 0
        return Plan(nothing, active.astype(np.float64), active, float("nan"), uniform=True)
