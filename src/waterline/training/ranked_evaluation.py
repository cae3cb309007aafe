"""Evaluation with the prompts dealt out to the ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from waterline.evaluation import CountsStore
from waterline.rollouts import Engine, Rollouts, SamplingParams
from waterline.rollouts.table import Ints
from waterline.training.ranks import Ranks
from waterline.training.sample import extend_on_ranks


class RankedSampler:
    """An engine's ``extend`` in which every rank samples its own prompts and all get the table."""

    def __init__(self, engine: Engine, ranks: Ranks) -> None:
        self.engine, self.ranks = engine, ranks

    def extend(
        self, rollouts: Rollouts, at_nodes: Ints, counts: Ints, params: SamplingParams
    ) -> Rollouts:
        """``counts[i]`` responses for the root ``at_nodes[i]`` = i."""
        return extend_on_ranks(self.engine, rollouts, counts, params, self.ranks)


class RankedCounts(CountsStore):
    """Counts that rank 0 writes; all ranks agree on what is missing."""

    def __init__(self, path: str | Path, ranks: Ranks) -> None:
        super().__init__(path)
        self.ranks = ranks

    def missing(self, step: int, split: str, prompts: list[int], n: int) -> list[int]:
        """As rank 0 sees it, since a file system may show the others an older file."""
        seen: list[int] = self.ranks.gather(super().missing(step, split, prompts, n))[0]
        return seen

    def _note(self, file: Path, noted: dict[str, Any]) -> None:
        if self.ranks.rank == 0:
            super()._note(file, noted)

    def write(self, step: int, split: str, prompt: Ints, n: Ints, c: Ints) -> None:
        """Adds or replaces rows, on rank 0."""
        if self.ranks.rank == 0:
            super().write(step, split, prompt, n, c)
