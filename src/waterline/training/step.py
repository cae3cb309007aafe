"""One training step, from prompts to a changed policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from waterline.allocation import Allocator, Outcomes, Plan, Request
from waterline.rollouts import Engine, Rollouts, SamplingParams
from waterline.success import SuccessEstimate
from waterline.tasks.task import Prompt, Task
from waterline.training.clock import Clock
from waterline.training.ranks import Ranks
from waterline.training.sample import extend_on_ranks, verified
from waterline.training.update import Batch, Diagnostics


@dataclass(frozen=True)
class Pieces:
    """What a method and a task put into each room."""

    task: Task
    success: SuccessEstimate
    allocator: Allocator
    engine: Engine
    advantage: Callable[[Tensor, Tensor], Tensor]
    n0: int
    ranks: Ranks


@dataclass(frozen=True)
class StepRecord:
    """What a step did: arrays over the B candidate prompts, and the batch that was learnt from."""

    ids: np.ndarray
    p_hat: np.ndarray
    known: np.ndarray
    plan: Plan
    trials: np.ndarray
    successes: np.ndarray
    batch: Batch
    diagnostics: Diagnostics
    seconds: dict[str, float]


def run_step(
    pieces: Pieces,
    prompts: Sequence[Prompt],
    params: SamplingParams,
    update: Callable[[Batch], Diagnostics],
) -> StepRecord:
    """Estimate, allocate, sample, verify, weigh, update, observe: the rooms in their order."""
    clock = Clock("allocate", "sample", "verify", "update")
    ids = np.array([p.id for p in prompts], dtype=np.int64)
    p_hat, known = pieces.success.estimate(ids)
    plan = pieces.allocator.start(Request(p=p_hat, known=known, n0=pieces.n0))
    clock.lap("allocate")

    rollouts = Rollouts.from_prompts(ids.tolist(), [p.tokens for p in prompts])
    further: Plan | None = plan
    while further is not None:
        plan = further
        rollouts = extend_on_ranks(pieces.engine, rollouts, plan.counts, params, pieces.ranks)
        clock.lap("sample")
        rollouts = verified(pieces.task, prompts, rollouts)
        clock.lap("verify")
        leaves = rollouts.leaves()
        row = leaves.tree  # roots are the first nodes, in the batch's order
        trials = np.bincount(row, minlength=len(ids))
        successes = np.bincount(row, weights=leaves.reward, minlength=len(ids)).astype(np.int64)
        further = pieces.allocator.next(Outcomes(trials=trials, successes=successes))
        clock.lap("allocate")

    if plan.p_hat is not None:
        p_hat, known = plan.p_hat, np.ones_like(known)
    advantage = pieces.advantage(torch.from_numpy(leaves.reward), torch.from_numpy(leaves.group))
    weight = torch.from_numpy(plan.weights[row])
    length = torch.tensor([rollouts.model_length(n) for n in leaves.node.tolist()])
    batch = Batch(rollouts, leaves.node, row, advantage, weight, length)
    diagnostics = update(batch)
    clock.lap("update")
    pieces.success.observe(ids, trials, successes)
    return StepRecord(ids, p_hat, known, plan, trials, successes, batch, diagnostics, clock.seconds)
