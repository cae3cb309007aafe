"""DARS: more rollouts for the prompts that a first phase found hard, with no fixed budget."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from waterline.allocation.checks import feasible, lower_bounds, total_budget, vector, whole
from waterline.allocation.plan import Plan
from waterline.allocation.rounds import Allocator, Outcomes, Request

Ints = NDArray[np.int64]


class DARSAllocator(Allocator):
    """The hardness-weighted schedule of DARS (Yang et al., arXiv 2508.13755) in two phases.

    All B prompts get m rollouts. From K successes, u = max(K, 1/2)/m, and a prompt with u < 1/2
    gets further ones up to the total

        N(u) = min(⌈m/(2u)⌉, n_max),

    so that N(u)·u, and with it the weight of ∇log p in a sum over responses, is about m/2 whatever
    the difficulty. The others stay at m. In the paper's terms the further count is
    ⌈(2(1 − u)·A − m·S)/S⌉ with the mean |advantage| S = 2u(1 − u) of a group and A = m/2.

    The total is no budget: it lies between B·m and B·n_max. Both phases train, and every response
    has weight 1: a prompt counts by its number of responses. A prompt whose responses of both
    phases are all right or all wrong is dropped: the last plan, which asks for no rollout, has it
    inactive, and :meth:`keep` leaves its responses out of the loss and its denominator. All of
    them stay in the outcomes, so they are counted as sampled and enter the history.

    Args:
        n_max: most rollouts of a prompt over both phases.
        m: rollouts per prompt of the first phase, at least 2. None takes half of the request's n0,
            and at least 2: 8 at n0 = 16, which with n_max = 64 are the paper's own numbers.

    Raises:
        ValueError: arguments, a request or outcomes that do not fit.
    """

    fixed_budget: ClassVar[bool] = False

    def __init__(self, n_max: int = 64, m: int | None = None) -> None:
        self.n_max = whole("n_max", n_max, 2)
        self.m = None if m is None else whole("m", m, 2)
        if self.m is not None and self.m > n_max:
            raise ValueError(f"m={m}: must be at most n_max, which is {n_max}.")
        self._asked: Ints | None = None  # (B,) totals so far; None while no batch is open
        self._u: NDArray[np.float64] | None = None  # (B,), from the first phase on

    def start(self, request: Request) -> Plan:
        """The first phase: m rollouts of every prompt. The request's estimates are not read."""
        batch = len(vector("p", request.p))
        n0 = total_budget(batch, request.n0, request.budget) // batch
        m = max(2, n0 // 2) if self.m is None else self.m
        if m > self.n_max:
            raise ValueError(
                f"n_max={self.n_max}: is below the {m} rollouts of the first phase, half of n0; "
                "raise n_max, or set m."
            )
        self._lower = lower_bounds(request.lower, batch, m)
        feasible(batch * self.n_max, self._lower, self.n_max)
        self._asked, self._u = np.full(batch, m, dtype=np.int64), None
        return self._plan(self._asked, np.ones(batch, dtype=np.bool_), np.zeros_like(self._asked))

    def next(self, outcomes: Outcomes) -> Plan | None:
        """The second phase, if any prompt is hard; then what is dropped; then None."""
        if self._asked is None:
            return None
        trials, successes = np.asarray(outcomes.trials), np.asarray(outcomes.successes)
        if not np.array_equal(trials, self._asked):
            raise ValueError(
                f"DARS asked for {self._asked.sum()} responses of {len(self._asked)} prompts so "
                "far, but the outcomes hold something else; pass those of all its rounds."
            )
        if (successes < 0).any() or (successes > trials).any():
            raise ValueError("the successes of a prompt must lie between 0 and its responses.")
        if self._u is None:
            m = int(trials[0])
            self._u = np.maximum(successes, 0.5) / m
            totals = -(-m * m // np.maximum(2 * successes, 1))  # ⌈m/(2u)⌉, without rounding
            totals = np.clip(totals, self._lower, self.n_max)
            if (totals > trials).any():
                self._asked = totals
                return self._plan(totals - trials, np.ones(len(trials), dtype=np.bool_), trials)
        self._asked = None
        mixed = (successes > 0) & (successes < trials)
        return self._plan(np.zeros_like(trials), mixed, trials)

    def _plan(self, counts: Ints, active: NDArray[np.bool_], earlier: Ints) -> Plan:
        return Plan(
            counts, active.astype(np.float64), active, water_level=float("nan"), uniform=False,
            earlier=earlier, p_hat=self._u,
        )  # fmt: skip

    def keep(
        self, row: Ints, success: NDArray[np.bool_], reward: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """The responses of prompts with a success and a failure."""
        count = np.bincount(row, minlength=1)
        right = np.bincount(row, weights=success, minlength=1)
        return np.asarray(((right > 0) & (right < count))[row])
