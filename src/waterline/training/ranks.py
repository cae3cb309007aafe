"""The processes of a run: which prompts are whose, and what is brought together."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def is_first_process() -> bool:
    """Whether this process is rank 0, which alone writes files and speaks.

    Before there is a process group, as the launchers (Lightning, torchrun, srun) tell.
    """
    if dist.is_initialized():
        return dist.get_rank() == 0
    places = ("RANK", "SLURM_PROCID", "NODE_RANK", "LOCAL_RANK")
    return all(int(os.environ.get(place, 0)) == 0 for place in places)


class Ranks:
    """The process group of a run, or the one process when there is none.

    Prompts are dealt out by their row in the batch. Everything that decides on numbers
    (allocation, seeds, advantages, weights, denominators) is computed on all ranks from the same
    gathered tables, so that it does not depend on how many there are.
    """

    @property
    def world(self) -> int:
        return dist.get_world_size() if dist.is_initialized() else 1

    @property
    def rank(self) -> int:
        return dist.get_rank() if dist.is_initialized() else 0

    def mine(self, n: int) -> list[int]:
        """The rows of a batch of ``n`` that this rank samples and updates from; may be none."""
        return list(range(self.rank, n, self.world))

    def gather(self, value: Any) -> list[Any]:
        """``value`` of every rank, in the order of the ranks."""
        if self.world == 1:
            return [value]
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value)
        return values

    def wait(self) -> None:
        """Until every rank is here, and what it has written is there."""
        if self.world > 1:
            dist.barrier()

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Adds up the gradients of all ranks; a rank without one adds zeros."""
        if self.world == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def sum_tensors(self, tensors: Iterable[Tensor]) -> None:
        """Replaces each tensor by its sum over all ranks."""
        if self.world > 1:
            for tensor in tensors:
                dist.all_reduce(tensor)

    def share(self, tensors: Iterable[Tensor]) -> None:
        """Replaces each tensor by that of rank 0."""
        if self.world > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)
