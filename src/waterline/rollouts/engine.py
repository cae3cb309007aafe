"""What a rollout engine offers: one sampling primitive and the care of its weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from torch import Tensor

from waterline.rollouts.sampling import SamplingParams
from waterline.rollouts.table import Ints, Rollouts
from waterline.runs import RunFailed


class EngineError(RunFailed):
    """An engine cannot sample: it has died, or its weights give no probabilities any more.

    Not the user's input: the run ends, its last checkpoint stays.
    """


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do.

    ``in_process``: samples from the trainer's own weights, so that ``sync`` copies nothing.
    ``inner_nodes``: can extend at model and observation nodes, not at roots alone.
    """

    in_process: bool
    inner_nodes: bool


class Engine(Protocol):
    """Fills rollout tables with sampled responses."""

    responses: ClassVar[str]
    """The kind of responses: 'sequences'."""

    @property
    def capabilities(self) -> Capabilities: ...

    def extend(
        self, rollouts: Rollouts, at_nodes: Ints, counts: Ints, params: SamplingParams
    ) -> Rollouts:
        """The table with ``counts[i]`` new model nodes below ``at_nodes[i]``, in that order.

        Roots, a second round after a pilot, a turn after an observation and a branch at the end of
        a response's part are the same call. Counts may be zero, all of them too. Each response has
        at least one token: the stop token, if nothing else.

        Raises:
            EngineError: the engine has failed.
        """
        ...

    def sync(self, named_tensors: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Take over the trainer's weights, named as in the Hugging Face model.

        Called before every sampling, that of evaluations too; nodes sampled from now on carry
        ``version``.
        """
        ...

    def sleep(self) -> None:
        """Give memory back until ``wake``."""
        ...

    def wake(self) -> None: ...

    def close(self) -> None: ...


def check_request(rollouts: Rollouts, at_nodes: Ints, counts: Ints) -> None:
    """Raises ValueError unless there is one count of at least 0 for each node of the table."""
    if at_nodes.shape != counts.shape or at_nodes.ndim != 1:
        raise ValueError(
            f"extend: {at_nodes.shape} nodes and {counts.shape} counts; give one count per node."
        )
    if (counts < 0).any():
        raise ValueError("extend: a count is negative; counts are numbers of responses.")
    if ((at_nodes < 0) | (at_nodes >= len(rollouts))).any():
        raise ValueError(
            f"extend: a node lies outside the table's {len(rollouts)} nodes; give node ids."
        )


def sample_indices(rollouts: Rollouts, parent: Ints) -> Ints:
    """Each new response's number among all samples drawn for its prompt so far."""
    drawn = rollouts.prompt[rollouts.sample >= 0]
    prompt = np.concatenate([drawn, rollouts.prompt[parent]])
    order = np.argsort(prompt, kind="stable")
    _, first, size = np.unique(prompt[order], return_index=True, return_counts=True)
    sample = np.empty(len(prompt), dtype=np.int64)
    sample[order] = np.arange(len(prompt)) - np.repeat(first, size)
    return sample[len(drawn) :]
