"""SERA's allocation: equal finite-rollout fidelity under a fixed budget."""

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from waterline.allocation.checks import (
    all_known,
    even_share_suffices,
    feasible,
    inside_unit_interval,
    lower_bounds,
    observability_threshold,
    total_budget,
    vector,
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

    def plan(
        self,
        p: ArrayLike,
        known: ArrayLike | None = None,
        n0: int | None = None,
        budget: int | None = None,
        lower: ArrayLike | None = None,
    ) -> Plan:
        p_ = vector("p", p)
        batch = len(p_)
        informed = all_known(known, batch)
        rollouts = total_budget(batch, n0, budget)
        bounds = lower_bounds(lower, batch, self.n_min)
        feasible(rollouts, bounds, self.n_max)
        if not informed:
            even_share_suffices(rollouts, lower, batch)
            return uniform_plan(batch, rollouts, self.correct)
        inside_unit_interval(p_)
        counts, active, level = prefix_search(p_, rollouts, bounds, self.n_max, self.u0)
        weights = response_weights(counts, active, rollouts / batch, self.correct)
        return Plan(counts, weights, active, water_level=level, uniform=False)
