"""What an evaluation measures, whatever the kind of responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from waterline.evaluation.stores import StepTable
from waterline.rewards import Verifier
from waterline.rollouts import Ranks
from waterline.runs import BadInput

# Called with the numbers of prompts done and in all.
Progress = Callable[[int, int], None]


def unseen(done: int, of: int) -> None:
    """The progress of an evaluation that nobody watches."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A policy with what it takes to evaluate it.

    Args:
        task: whose splits are evaluated. engine: samples from the policy on all ranks.
        verifier: judges what was sampled. seed: of the run, and so of the samples.
        version: of the weights, for the engine. workers: processes that load images.
        rules: settings by which the verifier differs from that of the training.
    """

    task: Any
    policy: nn.Module
    engine: Any
    verifier: Verifier
    ranks: Ranks
    seed: int
    version: int = 0
    workers: int = 0
    rules: Mapping[str, Any] = field(default_factory=dict)

    @property
    def noted(self) -> dict[str, Any]:
        """What stands next to the counts, besides how they were sampled."""
        return {"seed": self.seed, **({"rules": dict(self.rules)} if self.rules else {})}

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The policy's weights by the names that its engine knows them by."""
        weights: Iterator[tuple[str, Tensor]] = self.policy.named_weights()  # type: ignore[operator]
        return weights


class Evaluation(Protocol):
    """A piece of ``conf/evaluation/``: how a policy is evaluated.

    It is run on all ranks, and rank 0 writes.
    """

    def store(self, folder: str | Path) -> StepTable:
        """The table of results below the folder ``eval`` of a run."""
        ...

    def measure(
        self, subject: Subject, split: str, step: int, folder: str | Path,
        progress: Progress = unseen,
    ) -> None:  # fmt: skip
        """Puts what is missing of checkpoint ``step`` on ``split`` into the store.

        Raises:
            BadInput: The split is empty, or the store's results were made with other settings.
        """
        ...

    def metrics(self, folder: str | Path, split: str, step: int) -> dict[str, float]:
        """``eval/…`` of one checkpoint on one split, from the store."""
        ...


def require_split(task: Any, split: str) -> None:
    """Raise BadInput unless the task has prompts in this split."""
    if split not in task.splits or not len(task.splits[split]):
        filled = ", ".join(name for name, prompts in task.splits.items() if len(prompts))
        raise BadInput(
            f"The task has no prompts in the split {split!r}: choose among {filled}, or give it a "
            "size above 0."
        )
