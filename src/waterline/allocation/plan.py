"""What an allocator answers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.allocation.checks import lower_bounds


@dataclass(frozen=True, eq=False)
class Plan:
    """Rollout counts and response weights of one batch of B prompts, for one round.

    Attributes:
        counts: (B,) int64, how many rollouts to sample for each prompt in this round.
        weights: (B,) float64, the factor of each response's advantage: N0/N_q on active prompts,
            0 on the others (SERA, Section 3.3). N_q is the total over rounds.
        active: (B,) bool, the retained set 𝒜. The responses of other prompts train nothing.
        water_level: the level c of Equation 35; NaN where the counts come from no waterline.
        uniform: whether every prompt got the same share because nothing better was asked for
            or known.
        earlier: (B,) int64, what earlier rounds of the same batch sampled; None in the first.
        p_hat: (B,) float64, the success estimates that the allocator has made itself; None where
            it goes by those of the request.
        further: how many candidate prompts to add to the batch after this round, as far as the
            training set has them. The next plan then has a row for each of them, at the end.
    """

    counts: NDArray[np.int64]
    weights: NDArray[np.float64]
    active: NDArray[np.bool_]
    water_level: float
    uniform: bool
    earlier: NDArray[np.int64] | None = None
    p_hat: NDArray[np.float64] | None = None
    further: int = 0

    @property
    def totals(self) -> NDArray[np.int64]:
        """(B,) int64 rollouts of each prompt over all rounds up to this one."""
        return self.counts.copy() if self.earlier is None else self.counts + self.earlier

    @property
    def index(self) -> NDArray[np.int64]:
        """(M,) int64: the prompt row of each rollout of this round, in row order."""
        return np.repeat(np.arange(len(self.counts), dtype=np.int64), self.counts)


def response_weights(
    totals: NDArray[np.int64], active: NDArray[np.bool_], n0: float, correct: bool
) -> NDArray[np.float64]:
    """N0/N_q on active prompts and 0 elsewhere; 1 on active prompts when `correct` is False."""
    if not correct:
        return active.astype(np.float64)
    weights = np.zeros(len(totals), dtype=np.float64)
    return np.divide(n0, totals, out=weights, where=active)


def uniform_plan(
    batch: int, budget: int, correct: bool = True, lower: ArrayLike | None = None
) -> Plan:
    """Spread `budget` evenly over `batch` prompts; a remainder r gives the first r rows one more.

    With budget = B·N0 every count is N0 and every weight 1. Otherwise N0 stands for the mean
    count budget/B, and a prompt without a rollout is inactive.

    Raises:
        ValueError: a bound of `lower` (B,) is above the even share.
    """
    share, remainder = divmod(budget, batch)
    short = lower_bounds(lower, batch, 0) > share
    if short.any():
        raise ValueError(
            f"lower[{int(np.argmax(short))}] is more than the even share of {share} rollouts that "
            "a uniform plan gives; lower the bound or raise the budget."
        )
    counts = np.full(batch, share, dtype=np.int64)
    counts[:remainder] += 1
    active = counts > 0
    weights = response_weights(counts, active, budget / batch, correct)
    return Plan(counts, weights, active, water_level=float("nan"), uniform=True)
