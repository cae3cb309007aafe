"""Sampling and verifying one round of a step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from waterline.rewards import Verdict
from waterline.rollouts import Engine, Kind, Rollouts, SamplingParams
from waterline.runs import BadInput
from waterline.tasks.task import Prompt, Task
from waterline.training.ranks import Ranks

Ints = np.ndarray


def extend_on_ranks(
    engine: Engine, rollouts: Rollouts, counts: Ints, params: SamplingParams, ranks: Ranks
) -> Rollouts:
    """``counts[i]`` responses for root i, each rank sampling its own prompts.

    All ranks end with the same table, which is the one that a single rank would have sampled.

    Raises:
        BadInput: The policy has diverged, on all ranks at once.
    """
    mine = np.array(ranks.mine(len(counts)), dtype=np.int64)
    grown, refusal = rollouts, None
    try:
        grown = engine.extend(rollouts, mine, counts[mine], params)
    except ValueError as error:
        refusal = str(error)
    if told := [text for text in ranks.gather(refusal) if text is not None]:
        raise BadInput(told[0])
    if ranks.world == 1:
        return grown
    new = range(len(rollouts), len(grown))
    fields = [
        (int(grown.parent[i]), int(grown.sample[i]), grown.span(i), grown.span_logp(i),
         int(grown.finish[i]), int(grown.version[i]))
        for i in new
    ]  # fmt: skip
    merged = sorted((f for part in ranks.gather(fields) for f in part), key=lambda f: f[:2])
    parent, sample, spans, logp, finish, version = (list(c) for c in zip(*merged, strict=True))
    return rollouts.grown(
        np.array(parent), spans, Kind.MODEL, finish=np.array(finish, dtype=np.int8),
        version=version[0], sample=np.array(sample), logp=logp,
    )  # fmt: skip


def verified(task: Task, prompts: Sequence[Prompt], rollouts: Rollouts) -> Rollouts:
    """The table with a verdict and a reward of 0 or 1 for every leaf that had none."""
    by_id = {p.id: p for p in prompts}
    leaves = rollouts.leaves()
    new = [r for r in range(len(leaves)) if not leaves.verdict[r]]
    responses = []
    for r in new:
        tokens = rollouts.response(int(leaves.node[r]))
        if len(tokens) == 0:
            raise BadInput(
                f"A response to prompt {leaves.group[r]} has no token, so that it has no "
                "log-probability: let the engine return at least the stop token."
            )
        responses.append(task.tokenizer.decode(tokens.tolist()))
    verdicts = task.verify([by_id[int(leaves.group[r])] for r in new], responses)
    rewards = np.array([v == Verdict.correct for v in verdicts], dtype=np.float64)
    return rollouts.scored(leaves.node[new], rewards, verdicts)
