"""The bounded waterline and its integers (SERA, Appendix C.2), solved by sorting."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.allocation.checks import feasible, inside_unit_interval, lower_bounds, vector, whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Far above the rounding of a sum of counts or of c, far below any difference that matters.
ROUNDING = 1e-13
# Powers of two, which change no digit of a float that is far from its limits. At the least p of all
# the sum of 1/h would overflow and the square of an error would underflow without them.
DOWN, UP = 2.0**-64, 2.0**511


class BoundedWaterline:
    """Allocate (Appendix C.2) for the first k of B ranked prompts, for any k, after one sort.

    With the exposure h_q = −log(1 − p_q), the clipped count of Equation 35 rises linearly in the
    level c between c = (lower_q − 1) h_q and c = (upper − 1) h_q. The sum over any set of
    prompts is thus linear between neighbours among these 2B breakpoints, and c is a quotient on
    the one piece that holds the budget.

    Args:
        p: (B,) success estimates strictly inside (0, 1).
        lower: (B,) least counts, each at least 2.
        upper: the largest count.
        position: (B,) place of each row in the candidate batch, which breaks ties.
    """

    def __init__(self, p: Floats, lower: Ints, upper: int, position: Ints) -> None:
        self.lower, self.upper, self.position = lower, upper, position
        self.exposure = -np.log1p(-p)
        self.inverse = 1.0 / self.exposure
        self.least = lower - 1.0
        self.enter = self.least * self.exposure
        self.leave = (upper - 1.0) * self.exposure
        self.breakpoints = np.sort(np.concatenate([self.enter, self.leave]))

    @np.errstate(over="ignore")  # a count that overflows is clipped
    def level(self, k: int, budget: int, low: int, high: int) -> tuple[float, int]:
        """Level c of Equation 35 for the first k prompts, and the breakpoint that ends its piece.

        The breakpoint is the first at which the clipped counts use up the budget; it is known to
        lie between `low` and `high`. At the two ends of Equation 34 every count is at its bound:
        c is then the level at which the first count leaves its lower bound, or the last reaches
        the upper.
        """
        lower, enter, leave = self.lower[:k], self.enter[:k], self.leave[:k]
        if budget == lower.sum():
            return float(enter.min()), low
        if budget == k * self.upper:
            return float(leave.max()), high
        inverse, least, most = self.inverse[:k], self.least[:k], self.upper - 1.0
        above_one = np.empty(k)
        # A piece on which the sum stays equal to the budget belongs to the level at its start.
        needed = (budget - k) - ROUNDING * budget
        while low < high:
            middle = (low + high) // 2
            np.multiply(inverse, self.breakpoints[middle], out=above_one)
            np.minimum(above_one, most, out=above_one)
            np.maximum(above_one, least, out=above_one)
            if above_one.sum() >= needed:
                high = middle
            else:
                low = middle + 1
        end = self.breakpoints[low]
        waiting, full = enter >= end, leave < end
        rising = ~(waiting | full)
        # The integers are exact, so that the quotient is the only rounding.
        fixed = int(lower[waiting].sum()) + self.upper * np.count_nonzero(full)
        spare = budget - fixed - np.count_nonzero(rising)
        return float(spare * DOWN / (inverse[rising] * DOWN).sum()), low

    @np.errstate(over="ignore")
    def integers(self, k: int, budget: int, low: int, high: int) -> tuple[Ints, float, int]:
        """(k,) integer counts that sum to the budget (Equations 36–38), c, and the breakpoint.

        The paper's bisection keeps the side of its bracket whose sum is below the budget. A count
        that is still rising there floors to n − 1 when it would be exactly n at c, and then
        competes for the remainder like the others; a count at a bound stays.
        """
        c, piece = self.level(k, budget, low, high)
        if budget == k * self.upper:
            return np.full(k, self.upper, dtype=np.int64), c, piece
        just_below = 1.0 + (c * (1.0 - ROUNDING)) * self.inverse[:k]
        just_below[self.leave[:k] < self.breakpoints[piece]] = self.upper
        np.minimum(just_below, self.upper, out=just_below)
        counts = np.maximum(just_below.astype(np.int64), self.lower[:k])
        self._complete(counts, budget, c)
        return counts, c, piece

    def _complete(self, counts: Ints, budget: int, c: float) -> None:
        """Give the remainder to the prompts whose squared fidelity error grows least."""
        remainder = budget - int(counts.sum())
        if remainder == 0:
            return
        k = len(counts)
        exposure, target = self.exposure[:k], -np.expm1(-c)
        now = -np.expm1((1.0 - counts) * exposure)
        then = -np.expm1(-counts * exposure)
        delta = ((then - target) * UP) ** 2 - ((now - target) * UP) ** 2
        while remainder > 0:
            full = counts == self.upper
            delta[full] = np.inf
            take = min(remainder, k - int(np.count_nonzero(full)))
            limit = np.partition(delta, take - 1)[take - 1]
            below = delta < limit
            counts += below
            ties, room = np.flatnonzero(delta == limit), take - int(np.count_nonzero(below))
            if len(ties) > room:
                ties = ties[np.argsort(self.position[ties])[:room]]
            counts[ties] += 1
            remainder -= take


def bounded_counts(
    p: ArrayLike, budget: int, n_min: int = 2, n_max: int = 64, lower: ArrayLike | None = None
) -> tuple[Floats, float]:
    """Continuous counts x_q and the level c of the bounded waterline (SERA, Equation 35).

    x_q = clip(1 + c/h_q, n_min, n_max) with h_q = −log(1 − p_q) and Σ x_q = budget: the counts
    that maximise the least fidelity 1 − exp(−h_q (x_q − 1)) under the bounds.

    Args:
        p: (B,) success probabilities strictly inside (0, 1), all of them active.
        budget: rollouts M with Σ lower ≤ M ≤ B·n_max.
        n_min: least count, at least 2.
        n_max: largest count.
        lower: (B,) least counts of each prompt, where above n_min.

    Raises:
        ValueError: p outside (0, 1) or bounds that the budget does not fit.
    """
    p_ = vector("p", p)
    inside_unit_interval(p_)
    bounds = lower_bounds(lower, len(p_), whole("n_min", n_min, 2))
    budget = whole("budget", budget, 1)
    feasible(budget, bounds, whole("n_max", n_max, n_min))
    problem = BoundedWaterline(p_, bounds, n_max, np.arange(len(p_)))
    c, _ = problem.level(len(p_), budget, 0, 2 * len(p_) - 1)
    counts = np.clip(1.0 + c * problem.inverse, bounds, float(n_max))
    counts[problem.enter >= c] = bounds[problem.enter >= c]  # free of rounding at the bounds
    counts[problem.leave <= c] = n_max
    return counts, c
