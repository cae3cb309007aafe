"""Allocators of the literature in a few lines each, and one that looks on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from waterline.allocation import Allocator, Outcomes, Plan, Request, UniformAllocator

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def plan_of(counts: Ints, active: Bools | None = None, **more: Any) -> Plan:
    """A plan with weight 1 on active prompts; without ``active``, on those with a rollout."""
    on = counts > 0 if active is None else active
    return Plan(counts, on.astype(float), on, water_level=float("nan"), uniform=False, **more)


class DynamicSampling(Allocator):
    """DAPO's dynamic sampling (arXiv 2503.14476): n0 each, until B groups are mixed.

    Groups of equal responses are thrown away and as many further prompts are asked for, until
    there are enough or the training set is used up.
    """

    fixed_budget: ClassVar[bool] = False

    def start(self, request: Request) -> Plan:
        self.n0, self.wanted, self.asked = request.n0, len(request.p), 0
        return plan_of(np.full(self.wanted, request.n0))

    def next(self, outcomes: Outcomes) -> Plan | None:
        trials, successes = outcomes.trials, outcomes.successes
        mixed = (successes > 0) & (successes < trials)
        new = trials == 0
        if new.any():  # the prompts that the last plan asked for
            return plan_of(np.where(new, self.n0, 0), mixed | new, earlier=trials)
        missing = self.wanted - int(mixed.sum())
        if missing <= 0 or len(trials) == self.asked:
            return None
        self.asked = len(trials)  # if nobody has come by the next call, nobody is left
        return plan_of(np.zeros_like(trials), mixed, earlier=trials, further=missing)

    def keep(self, row: Ints, success: Bools, reward: NDArray[np.float64]) -> Bools:
        """The responses of mixed groups."""
        count = np.bincount(row, minlength=1)
        right = np.bincount(row, weights=success, minlength=1)
        return ((right > 0) & (right < count))[row]


class SkipSolved(Allocator):
    """No rollout for a prompt whose earlier responses were all right."""

    fixed_budget: ClassVar[bool] = False

    def start(self, request: Request) -> Plan:
        assert request.past_trials is not None
        assert request.past_successes is not None
        seen = request.past_trials > 0
        solved = seen & (request.past_successes == request.past_trials)
        return plan_of(np.where(solved, 0, request.n0))


class Curriculum(Allocator):
    """Doubles the candidates and samples the half that suits the progress, easy ones first.

    The half with p̂ nearest to 1 − progress; nothing is sampled before it is chosen.
    """

    def start(self, request: Request) -> Plan:
        self.half = len(request.p)
        nothing = np.zeros(self.half, dtype=np.int64)
        return plan_of(nothing, further=self.half)

    def next(self, outcomes: Outcomes) -> Plan | None:
        if outcomes.trials.any():
            return None
        request = outcomes.request
        assert request is not None
        order = np.argsort(np.abs(request.p - (1 - request.progress)), kind="stable")
        counts = np.zeros(len(request.p), dtype=np.int64)
        counts[order[: self.half]] = request.n0
        return plan_of(counts)


class TwoOfEach(UniformAllocator):
    """Down-sampling: learns from at most two right and two wrong responses of each group."""

    def keep(self, row: Ints, success: Bools, reward: NDArray[np.float64]) -> Bools:
        kind = 2 * row + success
        order = np.argsort(kind, kind="stable")
        _, first, size = np.unique(kind[order], return_index=True, return_counts=True)
        place = np.empty(len(row), dtype=np.int64)
        place[order] = np.arange(len(row)) - np.repeat(first, size)
        return place < 2


class Thrifty(Allocator):
    """One rollout less for each prompt after a batch in which half of the groups were mixed."""

    fixed_budget: ClassVar[bool] = False

    def __init__(self) -> None:
        self.mixed = 0.0  # share of mixed groups in the last batch

    def start(self, request: Request) -> Plan:
        count = request.n0 - (self.mixed >= 0.5)
        return plan_of(np.full(len(request.p), count))

    def next(self, outcomes: Outcomes) -> None:
        trials, successes = outcomes.trials, outcomes.successes
        self.mixed = float(np.mean((successes > 0) & (successes < trials)))

    def state_dict(self) -> dict[str, Any]:
        return {"mixed": self.mixed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.mixed = state["mixed"]


class LooksOn(UniformAllocator):
    """Uniform counts; ``seen`` has every request and outcome that any of its objects was given."""

    seen: ClassVar[list[tuple[Request, Outcomes]]] = []

    def next(self, outcomes: Outcomes) -> None:
        assert outcomes.request is not None
        self.seen.append((outcomes.request, outcomes))


class KeepsNothing(UniformAllocator):
    """Learns from no response."""

    def keep(self, row: Ints, success: Bools, reward: NDArray[np.float64]) -> Bools:
        return np.zeros(len(row), dtype=np.bool_)


class SamplesNothing(Allocator):
    """Asks for no response."""

    fixed_budget: ClassVar[bool] = False

    def start(self, request: Request) -> Plan:
        return plan_of(np.zeros(len(request.p), dtype=np.int64))
