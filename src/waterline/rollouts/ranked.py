"""Sampling on several ranks: an engine around an engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from torch import Tensor

from waterline.rollouts.engine import Capabilities, Engine, EngineError
from waterline.rollouts.ranks import Ranks
from waterline.rollouts.sampling import SamplingParams
from waterline.rollouts.table import Ints, Kind, Rollouts


class RankedEngine:
    """Every rank samples the trees of its own prompts, and all get the whole table.

    The table is the one that a single rank would have sampled, to the order of its nodes.

    Args:
        engine: this rank's. ranks: those that share the work.
    """

    responses: ClassVar[str] = "sequences"

    def __init__(self, engine: Engine, ranks: Ranks) -> None:
        self.engine, self.ranks = engine, ranks

    @property
    def capabilities(self) -> Capabilities:
        return self.engine.capabilities

    def extend(
        self, rollouts: Rollouts, at_nodes: Ints, counts: Ints, params: SamplingParams
    ) -> Rollouts:
        """See :class:`Engine`.

        Raises:
            EngineError: the engine of some rank has failed, on all ranks at once, so that none
                waits for another.
        """
        at_nodes, counts = np.asarray(at_nodes, np.int64), np.asarray(counts, np.int64)
        # Whole trees, for the samples of a prompt are numbered on the rank that draws them.
        _, tree = np.unique(rollouts.roots()[at_nodes], return_inverse=True)
        mine = np.flatnonzero(tree % self.ranks.world == self.ranks.rank)
        grown, fault = rollouts, None
        try:
            grown = self.engine.extend(rollouts, at_nodes[mine], counts[mine], params)
        except EngineError as error:
            if self.ranks.world == 1:
                raise
            fault = str(error)
        if faults := [text for text in self.ranks.gather(fault) if text is not None]:
            raise EngineError(faults[0])
        if self.ranks.world == 1:
            return grown
        # A rank's new nodes stand in the order of its calls; (call, sample) orders those of all.
        call = np.repeat(mine, counts[mine])
        fields = [
            (int(call[i]), int(grown.sample[n]), int(grown.parent[n]), grown.span(n),
             grown.sampled_logp(n), int(grown.finish[n]), int(grown.version[n]))
            for i, n in enumerate(range(len(rollouts), len(grown)))
        ]  # fmt: skip
        merged = sorted(
            (f for part in self.ranks.gather(fields) for f in part), key=lambda f: f[:2]
        )
        if not merged:
            return rollouts
        _, sample, parent, spans, logp, finish, version = (
            list(c) for c in zip(*merged, strict=True)
        )
        return rollouts.grown(
            np.array(parent), spans, Kind.MODEL, finish=np.array(finish, dtype=np.int8),
            version=version[0], sample=np.array(sample), logp=logp,
        )  # fmt: skip

    def sync(self, named_tensors: Iterable[tuple[str, Tensor]], version: int) -> None:
        self.engine.sync(named_tensors, version)

    def sleep(self) -> None:
        self.engine.sleep()

    def wake(self) -> None:
        self.engine.wake()

    def close(self) -> None:
        self.engine.close()
