"""The protocol of allocators: they run in rounds."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.allocation.plan import Plan


@dataclass(frozen=True, eq=False)
class Request:
    """What a trainer asks for one batch of B prompts.

    Attributes:
        p: (B,) float64 success estimates.
        known: (B,) bool, which prompts have an estimate.
        n0: mean rollouts per prompt; the budget is M = B·n0.
        budget: M itself, in place of B·n0.
        lower: (B,) lower bounds of the counts of active prompts.
    """

    p: NDArray[np.float64]
    known: NDArray[np.bool_]
    n0: int
    budget: int | None = None
    lower: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What the last round brought: (B,) int64 responses and successes of each prompt."""

    trials: NDArray[np.int64]
    successes: NDArray[np.int64]


class Allocator(Protocol):
    """`start` opens a batch, `next` is called with the outcomes of each round until None."""

    fixed_budget: ClassVar[bool]
    """Whether the counts of all rounds always sum to the budget."""

    estimates: ClassVar[str]
    """Whose success estimates the counts follow: 'given' (those of the request), 'pilot' (its own
    first round), '' where it reads none."""

    def start(self, request: Request) -> Plan: ...

    def next(self, outcomes: Outcomes) -> Plan | None: ...


class OneShotAllocator(ABC):
    """An allocator whose first plan is its last: a subclass writes `plan` alone."""

    fixed_budget: ClassVar[bool] = True
    estimates: ClassVar[str] = ""

    @abstractmethod
    def plan(
        self,
        p: ArrayLike,
        known: ArrayLike | None = None,
        n0: int | None = None,
        budget: int | None = None,
        lower: ArrayLike | None = None,
    ) -> Plan:
        """Plan a batch of B prompts.

        Args:
            p: (B,) success estimates.
            known: (B,) bool, which prompts have an estimate; None means all.
            n0: mean rollouts per prompt, so that the budget is B·n0.
            budget: the number of rollouts M of the batch; wins over `n0`.
            lower: (B,) lower bounds of the counts of active prompts.

        Raises:
            ValueError: input or a budget that no plan can satisfy.
        """

    def allocate(self, p: ArrayLike, n0: int) -> NDArray[np.int64]:
        """The (B,) int64 counts alone, for B·n0 rollouts."""
        return self.plan(p, n0=n0).counts

    def start(self, request: Request) -> Plan:
        """The plan of a request."""
        return self.plan(request.p, request.known, request.n0, request.budget, request.lower)

    def next(self, outcomes: Outcomes) -> Plan | None:
        """None: there is no second round."""
        return None
