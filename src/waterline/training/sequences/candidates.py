"""Candidates whose responses are sequences of tokens: the rollout table of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from waterline.allocation import Outcomes, Plan
from waterline.rewards import Verdict, Verifier
from waterline.rollouts import Engine, EngineError, Finish, Ranks, Rollouts, SamplingParams
from waterline.tasks import Prompt, Tokenizer
from waterline.training.step import Bools, Clock, Floats, Ints


@dataclass(frozen=True, eq=False)
class Sequences:
    """R sampled sequences, leaves of ``rollouts``; see :class:`Responses`."""

    rollouts: Rollouts
    node: Ints  # (R,) the leaf of each
    row: Ints
    group: Ints
    success: Bools
    reward: Floats
    length: Ints
    columns: Mapping[str, Tensor]

    def kept(self, mask: Bools) -> Sequences:
        """Those of ``mask`` (R,) alone; the table keeps all nodes."""
        tokens = torch.from_numpy(np.repeat(mask, self.length))
        return Sequences(
            rollouts=self.rollouts, node=self.node[mask], row=self.row[mask],
            group=self.group[mask], success=self.success[mask], reward=self.reward[mask],
            length=self.length[mask],
            columns={name: column[tokens] for name, column in self.columns.items()},
        )  # fmt: skip


class SequenceCandidates:
    """Prompts of a batch and the trees of their responses, the same on all ranks.

    Args:
        prompts: B of them, in the batch's order.
        engine: samples on all ranks, with the policy's weights of this step.
        verifier: judges the decoded responses. params: how they are sampled.
        add: gives up to k further prompts that are not among those with the given ids.
        fill: fills the token columns of these names into a table.
        reads: the columns that the method's advantage reads.
    """

    p = None  # no exact success probabilities

    def __init__(
        self,
        prompts: Sequence[Prompt],
        engine: Engine,
        verifier: Verifier,
        tokenizer: Tokenizer,
        params: SamplingParams,
        add: Callable[[int, Ints], Sequence[Prompt]] = lambda k, ids: [],
        fill: Callable[[Sequences, Sequence[str]], Rollouts] | None = None,
        reads: Sequence[str] = (),
    ) -> None:
        self.clock = Clock()
        self.prompts = list(prompts)
        self.engine, self.verifier, self.tokenizer, self.params = (
            engine, verifier, tokenizer, params,
        )  # fmt: skip
        self.add, self.fill, self.reads = add, fill, reads
        self.rollouts = Rollouts.from_prompts(*_ids_and_tokens(prompts))
        self.roots: Ints = np.arange(len(prompts), dtype=np.int64)

    @property
    def ids(self) -> Ints:
        return self.rollouts.prompt[self.roots]

    def sample(self, plan: Plan) -> Outcomes:
        """One round: ``plan.counts`` further responses of each prompt, judged."""
        self.rollouts = self.engine.extend(self.rollouts, self.roots, plan.counts, self.params)
        self.clock.lap("sample")
        self.rollouts = judged(self.verifier, self.tokenizer, self.prompts, self.rollouts)
        self.clock.lap("verify")
        if plan.further:
            new = self.add(plan.further, self.ids)
            first = len(self.rollouts)
            self.rollouts = self.rollouts.with_prompts(*_ids_and_tokens(new))
            self.roots = np.concatenate([self.roots, np.arange(first, len(self.rollouts))])
            self.prompts += new
        return self._outcomes()

    def _outcomes(self) -> Outcomes:
        found, count = self._leaves(), len(self.roots)
        verdict = self.rollouts.verdict[found.node]

        def total(values: np.ndarray) -> Floats:
            return np.bincount(found.row, weights=values, minlength=count).astype(np.float64)

        return Outcomes(
            trials=np.bincount(found.row, minlength=count),
            successes=total(found.success).astype(np.int64),
            columns={
                "reward": total(found.reward),
                "tokens": total(found.length),
                **{f"verdict/{name}": total(verdict == name.value) for name in Verdict},
            },
        )

    def responses(self) -> Sequences:
        """All leaves, with the token columns that the advantage reads."""
        found = self._leaves()
        if not self.reads:
            return found
        if self.fill is None:
            raise ValueError(f"An advantage reads {', '.join(self.reads)}, and nothing fills them.")
        found = replace(found, rollouts=self.fill(found, self.reads))
        where = path_tokens(found)
        columns = {
            name: torch.from_numpy(found.rollouts.columns[name][where]) for name in self.reads
        }
        return replace(found, columns=columns)

    def _leaves(self) -> Sequences:
        leaves = self.rollouts.leaves()
        place = np.full(len(self.rollouts), -1, dtype=np.int64)
        place[self.roots] = np.arange(len(self.roots))
        length = [self.rollouts.model_length(node) for node in leaves.node.tolist()]
        return Sequences(
            self.rollouts, leaves.node, place[leaves.tree], leaves.group, leaves.success,
            leaves.reward, np.array(length, dtype=np.int64), {},
        )  # fmt: skip


def path_tokens(found: Sequences) -> Ints:
    """(N,) where the model tokens of each response's path stand in the token columns."""
    table = found.rollouts
    spans = [
        np.arange(table.start[n], table.stop[n])
        for leaf in found.node.tolist()
        for n in table.path(leaf)
        if table.sample[n] >= 0
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *spans])


def judged(
    verifier: Verifier, tokenizer: Tokenizer, prompts: Sequence[Prompt], rollouts: Rollouts
) -> Rollouts:
    """The table with success, reward and verdict for every leaf that had none.

    Each rank judges its share and all get the whole: a verdict may depend on a time limit, and what
    the ranks decide must not differ.

    Raises:
        EngineError: a response has no token, so that it has no log-probability.
    """
    answers = {prompt.id: prompt.answer for prompt in prompts}
    leaves = rollouts.leaves()
    new = np.flatnonzero(leaves.verdict == "")
    responses = [rollouts.response(node) for node in leaves.node[new].tolist()]
    for response, prompt in zip(responses, leaves.group[new], strict=True):
        if len(response) == 0:
            raise EngineError(
                f"The engine gave prompt {prompt} a response without a token: it has to return at "
                "least the stop token."
            )
    ranks = Ranks()
    mine = ranks.mine(len(new))
    texts, new = [tokenizer.decode(responses[i].tolist()) for i in mine], new[mine]
    complete = rollouts.finish[leaves.node[new]] != Finish.LENGTH
    found = verifier([answers[i] for i in leaves.group[new].tolist()], texts, complete)
    own = leaves.node[new], found.success, found.reward, found.verdict.tolist()
    for part in ranks.gather(own):
        rollouts = rollouts.judged(*part)
    return rollouts


def _ids_and_tokens(prompts: Sequence[Prompt]) -> tuple[list[int], list[tuple[int, ...]]]:
    return [prompt.id for prompt in prompts], [prompt.tokens for prompt in prompts]
