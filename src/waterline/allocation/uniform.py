"""The same number of rollouts for every prompt."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from waterline.allocation.checks import all_known, even_share_suffices, total_budget, vector
from waterline.allocation.plan import Plan, uniform_plan
from waterline.allocation.rounds import OneShotAllocator


@dataclass(frozen=True)
class UniformAllocator(OneShotAllocator):
    """N_q = N0 for every prompt, weight 1: the allocation of GRPO, RLOO and MaxRL.

    The estimates are not read, only counted, so they may be NaN. A budget that B does not divide
    gives the first rows one rollout more; N0 in the weights N0/N_q is then the mean budget/B.
    """

    def plan(
        self,
        p: ArrayLike,
        known: ArrayLike | None = None,
        n0: int | None = None,
        budget: int | None = None,
        lower: ArrayLike | None = None,
    ) -> Plan:
        batch = len(vector("p", p))
        all_known(known, batch)
        rollouts = total_budget(batch, n0, budget)
        even_share_suffices(rollouts, lower, batch)
        return uniform_plan(batch, rollouts)
