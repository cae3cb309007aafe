"""Evaluating a policy by sampled responses: counts of correct ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from waterline.evaluation.pass_at_k import pass_at_k
from waterline.evaluation.stores import CountsStore
from waterline.evaluation.subject import Progress, Subject, require_split, unseen
from waterline.rollouts import Finish, Rollouts, SamplingParams
from waterline.rollouts.table import Ints
from waterline.runs import stream_key
from waterline.runs.settings import Positive, Share, Whole, WholeOrZero, check_fields
from waterline.tasks import Prompt


@dataclass(frozen=True, kw_only=True)
class SampledEvaluation:
    """Counts of correct responses into ``counts.parquet``, and Pass@K from them.

    The samples' seeds are those of the run, the same for all of its checkpoints: two of them are
    compared on the same uniforms.

    Args:
        n: responses per prompt; Pass@K needs n ≥ K.
        ks: the K of the metrics, as far as they are up to n.
        temperature, top_p, top_k: of the sampling.
        max_rows: responses sampled between two writes.
    """

    responses: ClassVar[str] = "sequences"

    n: Whole
    ks: Sequence[Whole] = ()
    temperature: Positive = 1.0
    top_p: Share = 1.0
    top_k: WholeOrZero = 0
    max_rows: Whole = 8192

    def __post_init__(self) -> None:
        check_fields(self)

    def _params(self, key: int, max_tokens: int, stop: Sequence[int] = ()) -> SamplingParams:
        return SamplingParams(
            key=key, max_tokens=max_tokens, stop=stop, temperature=self.temperature,
            top_p=self.top_p, top_k=self.top_k,
        )  # fmt: skip

    def store(self, folder: str | Path) -> CountsStore:
        """``counts.parquet`` below a run's folder ``eval``."""
        return CountsStore(Path(folder) / "counts.parquet")

    def measure(
        self, subject: Subject, split: str, step: int, folder: str | Path,
        progress: Progress = unseen,
    ) -> None:  # fmt: skip
        """See :class:`Evaluation`. Prompts are sampled in chunks of about ``max_rows`` responses.

        What the store holds already is not sampled again, so that a restarted evaluation goes on
        where it was, with the same samples.
        """
        require_split(subject.task, split)
        store, ranks = self.store(folder), subject.ranks
        by_id = {prompt.id: prompt for prompt in subject.task.splits[split]}
        sampling = {name: asdict(self)[name] for name in ("temperature", "top_p", "top_k")}
        if ranks.rank == 0:
            store.use_sampling(split, sampling | {"seed": subject.seed})
        # As rank 0 sees it, since a file system may show the others an older file.
        missing: list[int] = ranks.gather(store.missing(step, split, list(by_id), self.n))[0]
        key = stream_key(subject.seed, f"evaluation/{split}", 0)
        params = self._params(key, subject.task.max_response, subject.task.stop_tokens)
        if missing and ranks.rank == 0:
            store.require_writable()
        if missing:
            subject.engine.sync(subject.named_weights(), subject.version)
        per_chunk = max(1, self.max_rows // self.n)
        for first in range(0, len(missing), per_chunk):
            ids = missing[first : first + per_chunk]
            correct = _correct(subject, [by_id[i] for i in ids], self.n, params)
            if ranks.rank == 0:
                n = np.full(len(ids), self.n, dtype=np.int64)
                store.write(step, split, np.array(ids, dtype=np.int64), n, correct)
            progress(len(by_id) - len(missing) + first + len(ids), len(by_id))

    def metrics(self, folder: str | Path, split: str, step: int) -> dict[str, float]:
        """Unbiased ``eval/pass@K``, the mean over the prompts of the split."""
        rows = self.store(folder).at(step, split)
        n, c = rows["n"].to_numpy(), rows["c"].to_numpy()
        ks = [k for k in self.ks if k <= self.n]
        return {f"eval/pass@{k}": float(pass_at_k(n, c, k).mean()) for k in ks}


def _correct(subject: Subject, prompts: Sequence[Prompt], n: int, params: SamplingParams) -> Ints:
    roots = Rollouts.from_prompts([p.id for p in prompts], [p.tokens for p in prompts])
    counts = np.full(len(prompts), n, dtype=np.int64)
    rollouts = subject.engine.extend(roots, np.arange(len(prompts)), counts, params)
    leaves = rollouts.leaves()
    decode = subject.task.tokenizer.decode
    texts = [decode(rollouts.response(int(node)).tolist()) for node in leaves.node]
    answers = [prompts[int(root)].answer for root in leaves.tree]
    complete = rollouts.finish[leaves.node] != Finish.LENGTH
    success = subject.verifier(answers, texts, complete).success
    return np.bincount(leaves.tree, weights=success, minlength=len(prompts)).astype(np.int64)
