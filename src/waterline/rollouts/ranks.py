"""The processes of a run: which prompts are whose, and what is brought together."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from waterline.runs import BadInput

# What Lightning and its launchers tell a process: its place among the others.
_PLACES = ("RANK", "SLURM_PROCID", "NODE_RANK", "LOCAL_RANK")
_BUCKET = 8 * 2**20  # elements that are summed over ranks in one call


def is_alone(trainer: Mapping[str, Any]) -> bool:
    """Whether the settings ``trainer`` ask for one device on one node, and so for one process."""
    return trainer["devices"] in (1, "1", [0]) and trainer["num_nodes"] == 1


def is_first_process(trainer: Mapping[str, Any]) -> bool:
    """Whether this process is rank 0, which alone writes files and speaks.

    Before there is a process group, as the launchers (Lightning, torchrun, srun) tell. A run of one
    process does not ask them: it may stand inside of another job, whose ranks are not its own.

    Raises:
        BadInput: A launcher's variable is no number.
    """
    if is_alone(trainer):
        return True
    if dist.is_initialized():
        return dist.get_rank() == 0
    for place in _PLACES:
        rank = os.environ.get(place) or "0"
        if not rank.isdecimal():
            raise BadInput(f"The environment says {place}={rank}: unset it, or set a number.")
        if int(rank):
            return False
    return True


def has_launcher() -> bool:
    """Whether somebody has given this process its place among those of several nodes."""
    return any(os.environ.get(place) for place in _PLACES)


def surrounding_processes() -> int:
    """How many processes the surrounding job has, as its launcher tells; 1 where there is none."""
    told = [os.environ.get(name, "") for name in ("WORLD_SIZE", "SLURM_NTASKS")]
    return max([1, *(int(number) for number in told if number.isdecimal())])


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

    def sum_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Replaces each tensor by its sum over all ranks.

        Tensors of one type travel together in buckets: a call for each of hundreds of small ones
        costs more than the sum itself.
        """
        if self.world == 1:
            return
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            dist.all_reduce(flat)
            parts = flat.split([tensor.numel() for tensor in bucket])
            for tensor, part in zip(bucket, parts, strict=True):
                tensor.copy_(part.view_as(tensor))

    def share(self, tensors: Iterable[Tensor]) -> None:
        """Replaces each tensor by that of rank 0."""
        if self.world > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)


@contextmanager
def process_group() -> Iterator[Ranks]:
    """The processes that torchrun has started, as a group for as long as the context lasts.

    Each takes the GPU of its number, where there are GPUs. A process that torchrun did not start is
    alone.
    """
    ranks = Ranks()
    if not dist.is_torchelastic_launched() or dist.is_initialized():
        yield ranks
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        if ranks.rank > 0:
            logging.getLogger("waterline").setLevel(logging.ERROR)
        yield ranks
    finally:
        dist.destroy_process_group()


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """The tensors in order, cut where the type changes and where a bucket is full."""
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if bucket and (size + tensor.numel() > _BUCKET or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.numel()
    if bucket:
        yield bucket
