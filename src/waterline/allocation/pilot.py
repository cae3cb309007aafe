"""A pilot for every prompt, then the waterline with what the pilot showed."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from waterline.allocation.checks import (
    feasible,
    lower_bounds,
    observability_threshold,
    total_budget,
    vector,
    whole,
)
from waterline.allocation.plan import Plan, response_weights
from waterline.allocation.rounds import Allocator, Outcomes, Request
from waterline.allocation.search import prefix_search


class PilotWaterlineAllocator(Allocator):
    """Two rounds: m rollouts of all B prompts, then the rest by the waterline.

    The pilot's size and its share in the budget are those of SERA, Appendix D.2.1. That a prompt
    can be dropped after its pilot, as after an estimate from the history, is ours.

    After the pilot, p̂ = clip(K/m, 1/16, 15/16) from K successes. The pilots of dropped prompts
    are paid for, so the retained set shares M − m·(B − |𝒜|) in total, with lower bound m and
    upper bound n_max; its pilots count towards its totals and train. In the plan of the second
    round `counts` are the further rollouts, `totals` those of both rounds (they sum to M), and
    `weights` are N0 over the totals of retained prompts, 0 on dropped ones. The trainer uses the
    weights of the last plan for the responses of both rounds.

    The counts here depend on the outcomes of the same batch, so the expectation of Equation 3,
    which takes the count as fixed, does not hold: this is a baseline for the history-based
    allocator, not an unbiased form of it.

    Args:
        m: pilot rollouts per prompt, at least 2.
        n_max: most rollouts of a prompt over both rounds.
        u0: least probability of a mixed group, in [0, 1).
        correct: weigh the responses by N0/N_q; False gives weight 1 on active prompts.

    Raises:
        ValueError: arguments, a budget or outcomes that do not fit.
    """

    estimates: ClassVar[str] = "pilot"

    def __init__(self, m: int = 8, n_max: int = 64, u0: float = 0.05, correct: bool = True) -> None:
        self.m = whole("m", m, 2)
        self.n_max = whole("n_max", n_max, self.m)
        self.u0 = observability_threshold(u0)
        self.correct = correct
        self._open: tuple[int, NDArray[np.int64]] | None = None  # budget and lower bounds

    def start(self, request: Request) -> Plan:
        """The pilot: m rollouts of every prompt. The request's estimates are not read."""
        batch = len(vector("p", request.p))
        budget = total_budget(batch, request.n0, request.budget)
        lower = lower_bounds(request.lower, batch, self.m)
        feasible(budget, lower, self.n_max)
        self._open = budget, lower
        counts = np.full(batch, self.m, dtype=np.int64)
        active = np.ones(batch, dtype=np.bool_)
        weights = response_weights(counts, active, budget / batch, self.correct)
        return Plan(counts, weights, active, water_level=float("nan"), uniform=True)

    def next(self, outcomes: Outcomes) -> Plan | None:
        """The further rollouts after the pilot; None after the second round."""
        if self._open is None:
            return None
        budget, lower = self._open
        batch = len(lower)
        trials, successes = np.asarray(outcomes.trials), np.asarray(outcomes.successes)
        if trials.shape != (batch,) or successes.shape != (batch,) or (trials != self.m).any():
            raise ValueError(
                f"the pilot asked for {self.m} responses of each of {batch} prompts, but its "
                "outcomes hold something else; pass those of that round."
            )
        if (successes < 0).any() or (successes > trials).any():
            raise ValueError(f"the pilot's successes must lie between 0 and {self.m} a prompt.")
        self._open = None
        p = np.clip(successes / self.m, 1 / 16, 15 / 16)
        totals, active, level = prefix_search(p, budget, lower, self.n_max, self.u0, paid=self.m)
        weights = response_weights(totals, active, budget / batch, self.correct)
        further, pilot = np.where(active, totals - self.m, 0), np.full_like(totals, self.m)
        return Plan(further, weights, active, level, uniform=False, earlier=pilot, p_hat=p)
