"""One training step, from candidates to a changed policy: the same line for every task."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterline.advantages import TokenAdvantage
from waterline.allocation import Allocator, Outcomes, Plan, Request
from waterline.rewards import Verifier
from waterline.success import SuccessEstimate

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """What a method and a task put into each room.

    ``engine`` and ``loss`` are of the kind that the stage's responses need; ``n0`` is the mean
    number of rollouts per candidate prompt.
    """

    success: SuccessEstimate
    allocator: Allocator
    engine: Any
    verifier: Verifier
    advantage: TokenAdvantage
    loss: Any
    n0: int


class Clock:
    """Adds the seconds since the last lap to a part of the step."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("allocate", "sample", "verify", "update"), 0.0)
        self.last = time.perf_counter()

    def lap(self, part: str) -> None:
        """The time since the last lap was spent in ``part``."""
        now = time.perf_counter()
        self.seconds[part] += now - self.last
        self.last = now


class Responses(Protocol):
    """The R responses of a step that this rank learns from, or all ranks' where each needs them."""

    @property
    def row(self) -> Ints:
        """(R,) the candidate of each, a row of the plan."""
        ...

    @property
    def group(self) -> Ints:
        """(R,) its prompt id."""
        ...

    @property
    def success(self) -> Bools:
        """(R,) what allocation reads."""
        ...

    @property
    def reward(self) -> Floats:
        """(R,) what advantages read."""
        ...

    @property
    def length(self) -> Ints:
        """(R,) sampled tokens, 1 for a label; N is their sum."""
        ...

    @property
    def columns(self) -> Mapping[str, Tensor]:
        """(N,) token columns that the advantage reads, by name."""
        ...

    def kept(self, mask: Bools) -> Self:
        """Those of ``mask`` (R,) alone."""
        ...


class Candidates(Protocol):
    """The B candidate prompts of a step and what was sampled for them so far, over all ranks."""

    @property
    def ids(self) -> Ints:
        """(B,) prompt ids."""
        ...

    @property
    def p(self) -> Floats | None:
        """(B,) exact success probabilities, where the task has them."""
        ...

    @property
    def clock(self) -> Clock:
        """Of the step; ``sample`` laps sampling and verifying."""
        ...

    def sample(self, plan: Plan) -> Outcomes:
        """Samples and judges one round, then adds ``plan.further`` candidates at the end.

        Gives the outcomes of all rounds so far, a row for each candidate.
        """
        ...

    def responses(self) -> Responses:
        """What was sampled, all rounds together."""
        ...


@dataclass(frozen=True)
class Learned:
    """What a learner reports: metrics, equal on all ranks, and whether the optimizer stepped."""

    metrics: dict[str, float]
    stepped: bool


# Takes responses, their advantages (N,) and weights (R,), and changes the policy.
Learn = Callable[[Any, Tensor, Tensor], Learned]


@dataclass(frozen=True, eq=False)
class StepRecord:
    """What a step did: (B,) arrays over the candidates, what was learned, seconds by part."""

    ids: Ints
    p: Floats | None
    p_hat: Floats
    known: Bools
    plan: Plan
    outcomes: Outcomes
    learned: Learned
    seconds: dict[str, float]


def run_step(
    pieces: Pieces, candidates: Candidates, learn: Learn, progress: float = 0.0
) -> StepRecord:
    """Estimate, allocate, sample, verify, weigh, learn, observe: the rooms in their order.

    ``progress`` is the share of the run's steps that are done. What the step teaches enters the
    next one through ``observe`` alone.
    """
    clock = candidates.clock
    request = _request(pieces, candidates, progress)
    further: Plan | None = pieces.allocator.start(request)
    clock.lap("allocate")
    while further is not None:
        plan = further
        outcomes = candidates.sample(plan)
        if plan.further:
            request = _request(pieces, candidates, progress)
        further = pieces.allocator.next(replace(outcomes, request=request))
        clock.lap("allocate")
    if len(plan.counts) != len(candidates.ids):
        raise ValueError(
            f"{type(pieces.allocator).__name__} asked for further candidates in its last plan; "
            "give another plan, with a row for each of them."
        )

    responses = candidates.responses()
    advantage = pieces.advantage(
        torch.from_numpy(responses.reward), torch.from_numpy(responses.group),
        torch.from_numpy(responses.length), responses.columns,
    )  # fmt: skip
    kept = pieces.allocator.keep(responses.row, responses.success, responses.reward)
    if kept is not None:
        advantage = advantage[torch.from_numpy(np.repeat(kept, responses.length))]
        responses = responses.kept(kept)
    weight = torch.from_numpy(plan.weights[responses.row])
    learned = learn(responses, advantage, weight)
    clock.lap("update")
    pieces.success.observe(candidates.ids, outcomes.trials, outcomes.successes)
    p_hat, known = request.p, request.known
    if plan.p_hat is not None:
        p_hat, known = plan.p_hat, np.ones_like(known)
    return StepRecord(
        candidates.ids, candidates.p, p_hat, known, plan, outcomes, learned, clock.seconds
    )


def _request(pieces: Pieces, candidates: Candidates, progress: float) -> Request:
    p, known = pieces.success.estimate(candidates.ids, exact=candidates.p)
    trials, successes = pieces.success.past(candidates.ids) or (None, None)
    return Request(
        p=p, known=known, n0=pieces.n0, past_trials=trials, past_successes=successes,
        progress=progress, ids=candidates.ids,
    )  # fmt: skip
