"""No rollouts at all."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from waterline.allocation.checks import vector
from waterline.allocation.plan import Plan
from waterline.allocation.rounds import OneShotAllocator


class NoRollouts(OneShotAllocator):
    """N_q = 0 for every prompt: for a method that needs no response, such as cross-entropy."""

    fixed_budget: ClassVar[bool] = False
    reads_budget: ClassVar[bool] = False  # n0 is no setting of a run that samples nothing

    def plan(
        self,
        p: ArrayLike,
        known: ArrayLike | None = None,
        n0: int | None = None,
        budget: int | None = None,
        lower: ArrayLike | None = None,
    ) -> Plan:
        """Zero counts and weights for B prompts, whatever the budget."""
        batch = len(vector("p", p))
        return Plan(
            counts=np.zeros(batch, dtype=np.int64),
            weights=np.zeros(batch),
            active=np.zeros(batch, dtype=np.bool_),
            water_level=float("nan"),
            uniform=True,
        )
