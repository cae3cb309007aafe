"""SERA's allocation: equal finite-rollout fidelity under a fixed budget."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.allocation.checks import (
    feasible,
    inside_unit_interval,
    lower_bounds,
    observability_threshold,
    whole,
)
from waterline.allocation.plan import Plan, response_weights, uniform_plan
from waterline.allocation.rounds import OneShotAllocator
from waterline.allocation.search import prefix_search


@dataclass(frozen=True)
class WaterlineAllocator(OneShotAllocator):
    """The bounded waterline with the observability search (SERA, Appendices C.2 and C.3).

    Among the retained prompts the counts follow clip(1 + c/[−log(1 − p_q)], n_min, n_max), so
    that the fidelities κ(p_q, N_q) are as equal as bounds and integers allow; prompts that would
    rarely give a mixed group are dropped and their rollouts go to the others. The counts always
    sum to the budget. A batch that holds a prompt without an estimate gets a uniform plan.

    Args:
        n_min: least rollouts of a retained prompt, at least 2.
        n_max: most rollouts of a prompt; B·n_max must hold the budget. The papers use 4·N0.
        u0: least probability of a mixed group, in [0, 1).
        correct: weigh the responses by N0/N_q (Equation 43); False is the ablation with weight 1
            on every active prompt, whose gradient then grows with N_q.

    Raises:
        ValueError: bounds, a threshold, estimates or a budget that no plan can satisfy.
    """

    estimates: ClassVar[str] = "given"

    n_min: int = 2
    n_max: int = 64
    u0: float = 0.05
    correct: bool = True

    def __post_init__(self) -> None:
        whole("n_min", self.n_min, 2)
        whole("n_max", self.n_max, self.n_min)
        observability_threshold(self.u0)

    def split(
        self, p: NDArray[np.float64], informed: bool, budget: int, lower: ArrayLike | None
    ) -> Plan:
        bounds = lower_bounds(lower, len(p), self.n_min)
        feasible(budget, bounds, self.n_max)
        if not informed:
            return uniform_plan(len(p), budget, self.correct, lower)
        inside_unit_interval(p)
        counts, active, level = prefix_search(p, budget, bounds, self.n_max, self.u0)
        weights = response_weights(counts, active, budget / len(p), self.correct)
        return Plan(counts, weights, active, water_level=level, uniform=False)
