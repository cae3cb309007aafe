"""Rollouts as trees: a table of nodes and, read from it, a table of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Kind(IntEnum):
    """Whose text a node holds."""

    PROMPT = 0
    MODEL = 1
    OBSERVATION = 2


class Finish(IntEnum):
    """Why a node ended: a stop token, the length limit, or the environment's turn."""

    NONE = 0
    STOP = 1
    LENGTH = 2
    ENV = 3


@dataclass(frozen=True)
class Leaves:
    """One row per finished path; ``verdict`` is empty until the path was judged."""

    node: Ints  # (R,) the path's last node
    group: Ints  # (R,) the group id: the prompt's persistent id
    tree: Ints  # (R,) the root node
    success: NDArray[np.bool_]  # (R,) what allocation and Pass@K read
    reward: Floats  # (R,) what advantages read; NaN until judged
    verdict: NDArray[np.object_]  # (R,) names of Verdict

    def __len__(self) -> int:
        return len(self.node)


@dataclass(frozen=True)
class Rollouts:
    """A table of nodes; a node's id is its row. A flat batch is a tree of depth one.

    A node spans ``start[i]:stop[i]`` of ``tokens``. Next to the tokens stand named columns of the
    same length, NaN where a token has no value: ``sampled_logp``, the log-probabilities under which
    model tokens were sampled, and those that a method asks for (:mod:`waterline.rollouts.columns`).
    ``sample`` counts the samples drawn for a prompt, so that each response has the seed
    (run seed, step, prompt id, sample).
    """

    parent: Ints  # (n,) −1 for a root
    prompt: Ints  # (n,) persistent prompt id
    kind: NDArray[np.int8]
    start: Ints
    stop: Ints
    finish: NDArray[np.int8]
    version: Ints  # policy version that sampled the node, −1 for text from outside
    sample: Ints  # (n,) −1 for text from outside
    tokens: Ints  # (K,)
    columns: dict[str, NDArray[np.float32]]  # (K,) each
    success: NDArray[np.bool_]  # (n,) of leaves, once they are judged
    reward: Floats  # (n,) NaN elsewhere
    verdict: NDArray[np.object_]  # (n,) empty elsewhere

    @staticmethod
    def from_prompts(ids: Sequence[int], prompts: Sequence[Sequence[int]]) -> Rollouts:
        """One root per prompt, in the order given; node i is the root of prompt i."""
        none = np.zeros(0, dtype=np.int64)
        empty = Rollouts(
            none, none, none.astype(np.int8), none, none, none.astype(np.int8), none, none, none,
            {"sampled_logp": np.zeros(0, dtype=np.float32)}, none.astype(bool), np.zeros(0),
            none.astype(object),
        )  # fmt: skip
        return empty.with_prompts(ids, prompts)

    def with_prompts(self, ids: Sequence[int], prompts: Sequence[Sequence[int]]) -> Rollouts:
        """The table with one more root per prompt, at its end."""
        if len(ids) != len(prompts):
            raise ValueError(
                f"Rollouts: {len(ids)} ids and {len(prompts)} prompts; give one id per prompt."
            )
        if any(not -(2**63) <= int(i) < 2**63 for i in ids):
            raise ValueError(
                "Rollouts: a prompt id is outside int64; number the prompts within it."
            )
        if len({*ids, *self.prompt.tolist()}) != len(ids) + len(np.unique(self.prompt)):
            raise ValueError("Rollouts: a prompt id stands twice in the batch; ids must be unique.")
        if any(len(p) == 0 for p in prompts):
            raise ValueError("Rollouts: a prompt has no token; every prompt needs at least one.")
        parent = np.full(len(ids), -1, dtype=np.int64)
        spans = [np.asarray(p, dtype=np.int64) for p in prompts]
        return self.grown(parent, spans, Kind.PROMPT, prompt=np.asarray(ids, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.parent)

    def span(self, node: int) -> Ints:
        return self.tokens[self.start[node] : self.stop[node]]

    def sampled_logp(self, node: int) -> NDArray[np.float32]:
        return self.columns["sampled_logp"][self.start[node] : self.stop[node]]

    def path(self, node: int) -> list[int]:
        """Nodes from the root through ``node``."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = int(self.parent[node])
        return nodes[::-1]

    def grown(
        self,
        parent: Ints,
        spans: Sequence[Ints],
        kind: Kind,
        *,
        prompt: Ints | None = None,
        finish: NDArray[np.int8] | None = None,
        version: int = -1,
        sample: Ints | None = None,
        logp: Sequence[NDArray[np.float32]] | None = None,
    ) -> Rollouts:
        """The table with new nodes at its end."""
        n = len(parent)
        lengths = np.array([len(s) for s in spans], dtype=np.int64)
        stop = len(self.tokens) + np.cumsum(lengths)
        tokens = np.concatenate([self.tokens, *spans]) if n else self.tokens
        nothing = np.full(int(lengths.sum()), np.nan, dtype=np.float32)
        new = {"sampled_logp": np.concatenate(logp)} if logp is not None and n else {}
        outside = np.full(n, -1, dtype=np.int64)
        unfinished = np.full(n, Finish.NONE, dtype=np.int8)
        return Rollouts(
            parent=np.concatenate([self.parent, parent]),
            prompt=np.concatenate([self.prompt, self.prompt[parent] if prompt is None else prompt]),
            kind=np.concatenate([self.kind, np.full(n, kind, dtype=np.int8)]),
            start=np.concatenate([self.start, stop - lengths]),
            stop=np.concatenate([self.stop, stop]),
            finish=np.concatenate([self.finish, unfinished if finish is None else finish]),
            version=np.concatenate([self.version, np.full(n, version, dtype=np.int64)]),
            sample=np.concatenate([self.sample, outside if sample is None else sample]),
            tokens=tokens,
            columns={
                name: np.concatenate([column, new.get(name, nothing)])
                for name, column in self.columns.items()
            },
            success=np.concatenate([self.success, np.zeros(n, dtype=bool)]),
            reward=np.concatenate([self.reward, np.full(n, np.nan)]),
            verdict=np.concatenate([self.verdict, np.full(n, "", dtype=object)]),
        )

    def observed(self, nodes: Ints, spans: Sequence[Ints]) -> Rollouts:
        """The table with an observation after each of ``nodes``: the environment's turn."""
        return self.grown(np.asarray(nodes, dtype=np.int64), spans, Kind.OBSERVATION)

    def leaf_nodes(self) -> Ints:
        """Nodes without children that are not prompts, in order of their ids."""
        has_child = np.zeros(len(self), dtype=bool)
        has_child[self.parent[self.parent >= 0]] = True
        return np.flatnonzero(~has_child & (self.kind != Kind.PROMPT))

    def leaves(self) -> Leaves:
        nodes = self.leaf_nodes()
        return Leaves(
            node=nodes,
            group=self.prompt[nodes],
            tree=self.roots()[nodes],
            success=self.success[nodes],
            reward=self.reward[nodes],
            verdict=self.verdict[nodes],
        )

    def roots(self) -> Ints:
        """(n,) the root of each node's tree."""
        roots = np.where(self.parent < 0, np.arange(len(self)), self.parent)
        while (self.parent[roots] >= 0).any():
            roots = roots[roots]
        return roots

    def response(self, leaf: int) -> Ints:
        """All tokens after the prompt on the path to ``leaf``."""
        spans = [self.span(n) for n in self.path(leaf) if self.kind[n] != Kind.PROMPT]
        return np.concatenate([np.zeros(0, dtype=np.int64), *spans])

    def model_length(self, leaf: int) -> int:
        """Sampled tokens on the path to ``leaf``: those that a loss is taken of."""
        return sum(len(self.span(n)) for n in self.path(leaf) if self.kind[n] == Kind.MODEL)

    def judged(
        self, nodes: Ints, success: NDArray[np.bool_], reward: Floats, verdict: Sequence[str]
    ) -> Rollouts:
        """The table with success, reward and verdict of the leaves ``nodes``."""
        table = replace(
            self, success=self.success.copy(), reward=self.reward.copy(),
            verdict=self.verdict.copy(),
        )  # fmt: skip
        table.success[nodes], table.reward[nodes] = success, reward
        table.verdict[nodes] = np.array(verdict, dtype=object)
        return table
