"""Evaluating a policy by sampled responses: counts of correct ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from waterline.evaluation.pass_at_k import pass_at_k
from waterline.evaluation.responses import ResponseStore
from waterline.evaluation.stores import CountsStore
from waterline.evaluation.subject import Progress, Subject, require_split, unseen
from waterline.rollouts import Finish, Kind, Rollouts, SamplingParams
from waterline.rollouts.table import Ints
from waterline.runs import stream_key
from waterline.runs.settings import Share, Temperature, Whole, WholeOrZero, check_fields
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
        keep_responses: whether texts and verdicts are written too, see :class:`ResponseStore`.
    """

    responses: ClassVar[str] = "sequences"

    n: Whole
    ks: Sequence[Whole] = ()
    temperature: Temperature = 1.0
    top_p: Share = 1.0
    top_k: WholeOrZero = 0
    max_rows: Whole = 8192
    keep_responses: bool = False

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

        What the store holds already is kept, and not sampled again: a restarted evaluation goes on
        where it was, with the same samples; one with a larger n adds to them, and one with a
        smaller n leaves them as they are.
        """
        require_split(subject.task, split)
        store, ranks = self.store(folder), subject.ranks
        by_id = {prompt.id: prompt for prompt in subject.task.splits[split]}
        sampling = {name: asdict(self)[name] for name in ("temperature", "top_p", "top_k")}
        # As rank 0 sees it, since a file system may show the others an older file.
        held: dict[int, tuple[int, int]] = ranks.gather(store.held(step, split))[0]
        missing = [i for i in by_id if held.get(i, (0, 0))[0] < self.n]
        if ranks.rank == 0:
            store.use_sampling(split, sampling | subject.noted, grows=bool(missing))
        key = stream_key(subject.seed, f"evaluation/{split}", 0)
        params = self._params(key, subject.task.max_response, subject.task.stop_tokens)
        if missing:
            subject.engine.sync(subject.named_weights(), subject.version)
        per_chunk = max(1, self.max_rows // self.n)
        for first in range(0, len(missing), per_chunk):
            ids = missing[first : first + per_chunk]
            drawn, right = np.array([held.get(i, (0, 0)) for i in ids], dtype=np.int64).T
            rows = _sampled(subject, [by_id[i] for i in ids], drawn, self.n, params)
            new = np.bincount(rows["row"], weights=rows["success"], minlength=len(ids))
            correct = right + new.astype(np.int64)
            if ranks.rank == 0:
                if self.keep_responses:  # first, so that what is counted has its text
                    ResponseStore(Path(folder) / "responses").write(step, split, rows)
                n = np.full(len(ids), self.n, dtype=np.int64)
                store.write(step, split, np.array(ids, dtype=np.int64), n, correct)
            progress(len(by_id) - len(missing) + first + len(ids), len(by_id))

    def metrics(self, folder: str | Path, split: str, step: int) -> dict[str, float]:
        """Unbiased ``eval/pass@K``, the mean over the prompts of the split."""
        rows = self.store(folder).at(step, split)
        n, c = rows["n"].to_numpy(), rows["c"].to_numpy()
        ks = [k for k in self.ks if k <= self.n]
        return {f"eval/pass@{k}": float(pass_at_k(n, c, k).mean()) for k in ks}


def _sampled(
    subject: Subject, prompts: Sequence[Prompt], drawn: Ints, n: int, params: SamplingParams
) -> pd.DataFrame:
    """Each prompt's responses ``drawn`` to ``n``, judged; ``row`` is the prompt's in the chunk."""
    roots = np.arange(len(prompts))
    before = Rollouts.from_prompts([p.id for p in prompts], [p.tokens for p in prompts])
    # Those that were drawn before have their numbers, and so their seeds; their text is gone.
    before = before.grown(
        np.repeat(roots, drawn), [np.zeros(0, dtype=np.int64)] * int(drawn.sum()), Kind.MODEL,
        sample=np.concatenate([np.arange(d) for d in drawn]),
    )  # fmt: skip
    rollouts = subject.engine.extend(before, roots, n - drawn, params)
    leaves = rollouts.leaves()
    new = leaves.node >= len(before)
    nodes, trees = leaves.node[new], leaves.tree[new]
    mine = subject.ranks.mine(len(nodes))  # each rank reads and judges some of them
    nodes, trees = nodes[mine], trees[mine]
    decode = subject.task.tokenizer.decode
    texts = [decode(rollouts.response(int(node)).tolist()) for node in nodes]
    answers = [prompts[int(root)].answer for root in trees]
    judged = subject.verifier(answers, texts, rollouts.finish[nodes] != Finish.LENGTH)
    part = pd.DataFrame({
        "row": trees, "prompt": rollouts.prompt[nodes], "sample": rollouts.sample[nodes],
        "tokens": [rollouts.model_length(int(node)) for node in nodes],
        "verdict": judged.verdict, "reward": judged.reward, "success": judged.success,
        "text": texts,
    })  # fmt: skip
    whole: pd.DataFrame = pd.concat(subject.ranks.gather(part))
    return whole.sort_values(["row", "sample"], ignore_index=True)
