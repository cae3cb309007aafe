"""The protocol of allocators: they run in rounds."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.allocation.checks import all_known, total_budget, vector
from waterline.allocation.plan import Plan, uniform_plan


@dataclass(frozen=True, eq=False)
class Request:
    """What a trainer asks for one batch of B prompts.

    Attributes:
        p: (B,) float64 success estimates.
        known: (B,) bool, which prompts have an estimate.
        ids: (B,) int64 persistent prompt ids, for an allocator that remembers prompts.
        n0: mean rollouts per prompt; the budget is M = B·n0.
        budget: M itself, in place of B·n0.
        lower: (B,) lower bounds of the counts of active prompts.
        past_trials, past_successes: (B,) float64 responses and successes of earlier epochs, as far
            as they still count; None where the success estimate keeps none.
        progress: share of the run's steps that are done, in [0, 1).
    """

    p: NDArray[np.float64]
    known: NDArray[np.bool_]
    n0: int
    budget: int | None = None
    lower: NDArray[np.int64] | None = None
    past_trials: NDArray[np.float64] | None = None
    past_successes: NDArray[np.float64] | None = None
    progress: float = 0.0
    ids: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What the rounds so far have brought.

    Attributes:
        trials, successes: (B,) int64 responses and successes of each prompt.
        columns: further (B,) float64 sums over each prompt's responses, by name: 'reward', and
            'tokens' where responses are sequences.
        request: the request as it stands now; it has more rows than before when the last plan
            asked for further candidates. None where nobody asks.
    """

    trials: NDArray[np.int64]
    successes: NDArray[np.int64]
    columns: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    request: Request | None = None


class Allocator(ABC):
    """`start` opens a batch, `next` is called with the outcomes of each round until None.

    What a subclass leaves out is what most allocators share: one round, all responses kept,
    nothing to remember.
    """

    fixed_budget: ClassVar[bool] = True
    """Whether the counts of all rounds always sum to the budget."""
    reads_budget: ClassVar[bool] = True
    """Whether it samples at all, so that n0 is a setting of the run."""
    estimates: ClassVar[str] = ""
    """What a waterline goes by: 'given' (those of the request) or 'pilot' (its own); else ''."""

    @abstractmethod
    def start(self, request: Request) -> Plan:
        """The plan of the first round."""

    def next(self, outcomes: Outcomes) -> Plan | None:
        """The plan of a further round; None when there is none."""
        return None

    def keep(
        self, row: NDArray[np.int64], success: NDArray[np.bool_], reward: NDArray[np.float64]
    ) -> NDArray[np.bool_] | None:
        """Which of the R sampled responses are learned from: (R,) bool, or None for all.

        Called once after the last round. `row` (R,) is the prompt of each response. Advantages and
        the success history have read all of them; losses and denominators see those kept. With
        labels each rank passes its own responses, whole groups: decide group by group.
        """
        return None

    def state_dict(self) -> dict[str, Any]:
        """What the next batches depend on, in plain Python types."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Go on from a `state_dict`."""


class OneShotAllocator(Allocator):
    """An allocator whose first plan is its last: a subclass writes `split` alone."""

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
        p_ = vector("p", p)
        informed = all_known(known, len(p_))
        return self.split(p_, informed, total_budget(len(p_), n0, budget), lower)

    def split(
        self, p: NDArray[np.float64], informed: bool, budget: int, lower: ArrayLike | None
    ) -> Plan:
        """The plan for checked input: evenly, unless a subclass knows better.

        `informed` says whether every prompt has an estimate. Raises as `plan` does.
        """
        return uniform_plan(len(p), budget, lower=lower)

    def allocate(self, p: ArrayLike, n0: int) -> NDArray[np.int64]:
        """The (B,) int64 counts alone, for B·n0 rollouts."""
        return self.plan(p, n0=n0).counts

    def start(self, request: Request) -> Plan:
        """The plan of a request."""
        return self.plan(request.p, request.known, request.n0, request.budget, request.lower)
