"""Sampling a policy on held-out prompts into counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from waterline.evaluation.counts import CountsStore
from waterline.rewards import Verdict
from waterline.rollouts import Rollouts, SamplingParams
from waterline.rollouts.table import Ints
from waterline.runs import BadInput, stream_key
from waterline.tasks.task import Prompt, Task


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """How a policy is evaluated.

    Args:
        n: responses per prompt; Pass@K needs n ≥ K.
        temperature, top_p, top_k: of the sampling.
        max_rows: responses sampled between two writes.
        seed: of the samples; the same for all methods and checkpoints, which then meet the same
            uniforms.
    """

    n: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_rows: int = 8192
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n < 1 or self.max_rows < 1:
            raise ValueError(f"evaluation n={self.n}, max_rows={self.max_rows}: both at least 1.")
        SamplingParams(
            key=0, max_tokens=1, temperature=self.temperature, top_p=self.top_p, top_k=self.top_k
        )


class Sampler(Protocol):
    """What an evaluation asks of an engine."""

    def extend(
        self, rollouts: Rollouts, at_nodes: Ints, counts: Ints, params: SamplingParams
    ) -> Rollouts: ...


def evaluate(
    engine: Sampler,
    task: Task,
    split: str,
    step: int,
    settings: EvaluationSettings,
    store: CountsStore,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> None:
    """Fills ``store`` with the counts of checkpoint ``step`` on ``split``.

    Prompts are sampled in chunks of about ``max_rows`` responses; what the store holds already is
    not sampled again, so that a restarted evaluation goes on where it was, with the same samples.

    Raises:
        BadInput: The split is empty, or the store's counts were sampled with other settings.
    """
    require_split(task, split)
    by_id = {p.id: p for p in task.splits[split]}
    sampling = ("temperature", "top_p", "top_k", "seed")
    store.use_sampling(split, {name: getattr(settings, name) for name in sampling})
    missing = store.missing(step, split, list(by_id), settings.n)
    params = SamplingParams(
        key=stream_key(settings.seed, f"evaluation/{split}", 0),
        max_tokens=task.max_response,
        stop=task.stop_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
    )
    per_chunk = max(1, settings.max_rows // settings.n)
    for first in range(0, len(missing), per_chunk):
        ids = missing[first : first + per_chunk]
        correct = _correct(engine, task, [by_id[i] for i in ids], settings.n, params)
        n = np.full(len(ids), settings.n, dtype=np.int64)
        store.write(step, split, np.array(ids, dtype=np.int64), n, correct)
        progress(len(by_id) - len(missing) + first + len(ids), len(by_id))


def require_split(task: Task, split: str) -> None:
    """Raise BadInput unless the task has prompts in this split."""
    if not task.splits.get(split):
        filled = ", ".join(name for name, prompts in task.splits.items() if prompts)
        raise BadInput(
            f"The task has no prompts in the split {split!r}: choose among {filled}, or give it a "
            "size above 0."
        )


def _correct(
    engine: Sampler, task: Task, prompts: Sequence[Prompt], n: int, params: SamplingParams
) -> np.ndarray:
    roots = Rollouts.from_prompts([p.id for p in prompts], [p.tokens for p in prompts])
    counts = np.full(len(prompts), n, dtype=np.int64)
    rollouts = engine.extend(roots, np.arange(len(prompts)), counts, params)
    leaves = rollouts.leaves()
    texts = [task.tokenizer.decode(rollouts.response(int(i)).tolist()) for i in leaves.node]
    verdicts = task.verify([prompts[int(t)] for t in leaves.tree], texts)
    hits = np.array([v == Verdict.correct for v in verdicts], dtype=np.int64)
    return np.bincount(leaves.tree, weights=hits, minlength=len(prompts)).astype(np.int64)
