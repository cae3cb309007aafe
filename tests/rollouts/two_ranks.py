"""Two processes that share the work, over gloo on this machine, and what they do in the tests.

The functions stand in a module of their own, for the processes import them by name.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from policies.models import pair, tiny
from waterline.advantages import PerResponse, maxrl
from waterline.allocation import PilotWaterlineAllocator, WaterlineAllocator
from waterline.losses import PolicyLoss
from waterline.policies import SharedPrefixLM
from waterline.rewards import judgement
from waterline.rollouts import (
    ColumnPass,
    EngineError,
    Finish,
    Kind,
    RankedEngine,
    Ranks,
    Rollouts,
    SamplingParams,
    SharedPrefixEngine,
    pack_leaves,
)
from waterline.rollouts import ranks as ranks_module
from waterline.rollouts.engine import sample_indices
from waterline.success import DiscountedBeta
from waterline.tasks import Prompt
from waterline.training.sequences.candidates import SequenceCandidates
from waterline.training.sequences.update import PolicyUpdate, UpdateSettings
from waterline.training.step import Pieces, run_step

Work = Callable[[Ranks], Any]
PARAMS = SamplingParams(key=5, max_tokens=7, stop=(2,))


def on_two_ranks(work: Work, folder: Path) -> list[Any]:
    """What ``work`` gives on each of two ranks."""
    mp.spawn(_rank, args=(work, str(folder)), nprocs=2)
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(2)]


def _rank(rank: int, work: Work, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    torch.save(work(Ranks()), f"{folder}/{rank}.pt")
    dist.destroy_process_group()


class Numbered:
    """An engine whose response follows from the prompt's id and the sample's number.

    Args:
        fails_on: the ids of prompts that it cannot sample.
    """

    def __init__(self, fails_on=()):
        self.fails_on, self.asked, self.version = set(fails_on), [], 0

    def sync(self, named_tensors, version):
        self.version = version

    def extend(self, rollouts, at_nodes, counts, params):
        parent = np.repeat(at_nodes, counts)
        self.asked.append(rollouts.prompt[parent].tolist())
        if wrong := self.fails_on & set(self.asked[-1]):
            raise EngineError(f"The engine cannot sample prompt {min(wrong)}.")
        sample = sample_indices(rollouts, parent)
        prompt = rollouts.prompt[parent]
        spans = [
            np.array([abs(p) % 7, *range(s)])
            for p, s in zip(prompt.tolist(), sample.tolist(), strict=True)
        ]
        finish = np.where(sample % 2, Finish.STOP, Finish.LENGTH).astype(np.int8)
        return rollouts.grown(
            parent, spans, Kind.MODEL, finish=finish, version=self.version, sample=sample,
            logp=[np.arange(len(s), dtype=np.float32) / 3 for s in spans],
        )  # fmt: skip


def contents(table: Rollouts) -> dict[str, np.ndarray]:
    """Every array of a table."""
    arrays: dict[str, Any] = dict(vars(table))
    return {**arrays.pop("columns"), **arrays}


def grow(ranks: Ranks) -> list[dict[str, np.ndarray]]:
    """A table after each of many rounds, some of which are empty on a rank or on all."""
    engine = RankedEngine(Numbered(), ranks)
    ids = [9, -4, 2**61, 0, 17]
    table = Rollouts.from_prompts(ids, [[1, 2], [3], [4], [5, 5, 5], [6]])
    tables = []

    def extend(nodes, counts):
        nonlocal table
        engine.sync([], version=len(tables))
        table = engine.extend(table, np.array(nodes), np.array(counts), PARAMS)
        tables.append(contents(table))

    extend(range(5), [0] * 5)  # nothing on any rank
    extend(range(5), [2, 0, 3, 1, 2])
    extend(range(5), [0, 2, 0, 3, 0])  # nothing on rank 0
    extend([], [])
    extend([4, 0, 2, 1], [1, 1, 2, 1])  # in another order
    # Observations of several nodes of one tree and of others, then turns below them.
    table = table.observed(np.array([5, 6, 8, 13]), [np.array([k]) for k in range(4)])
    last = list(range(len(table) - 4, len(table)))
    extend(last[::-1], [1, 0, 2, 3])
    table = table.with_prompts([33, -12], [[7], [8, 8]])
    extend([len(table) - 1, 0, len(table) - 2], [2, 1, 1])
    extend([3], [2])  # the prompts of one rank alone
    return tables


def fail(ranks: Ranks) -> str:
    """The fault of an engine that fails on one rank."""
    table = Rollouts.from_prompts([9, -4, 7], [[1], [2], [3]])
    try:
        RankedEngine(Numbered([-4]), ranks).extend(table, np.arange(3), np.ones(3), PARAMS)
    except EngineError as error:
        return str(error)
    return "none"


def sums(ranks: Ranks) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Tensors of many shapes and types summed in buckets, and each by a call of its own."""
    ranks_module._BUCKET = 40
    generator = torch.Generator().manual_seed(ranks.rank)
    shapes = [(3, 4), (), (50,), (0, 2), (5, 2, 2), (7,), (1, 39), (2,)]
    types = [torch.float32, torch.float32, torch.float64, torch.float32, torch.bfloat16]
    tensors = [
        torch.randn(shape, generator=generator).to(types[i % len(types)])
        for i, shape in enumerate(shapes)
    ]
    tensors.append(torch.randn(4, 6, generator=generator).t())  # not contiguous
    alone = [tensor.clone() for tensor in tensors]
    for tensor in alone:
        dist.all_reduce(tensor)
    ranks.sum_tensors(tensors)
    ranks.sum_tensors([])
    return list(zip(tensors, alone, strict=True))


def share(ranks: Ranks) -> torch.Tensor:
    """Rank 0's tensor."""
    tensor = torch.tensor([float(ranks.rank + 1)])
    ranks.share([tensor])
    return tensor


PROMPTS = [Prompt(i, "", tuple(t), "") for i, t in zip([40, -3, 8], [(1, 4), (5,), (6, 7, 8)],
                                                       strict=True)]  # fmt: skip


class Words:
    def decode(self, tokens):
        return " ".join(map(str, tokens))


def even(answers, responses, complete):
    """Right is a response with an even sum."""
    sums = [sum(map(int, response.split())) for response in responses]
    return judgement(["wrong" if total % 2 else "correct" for total in sums])


def step(
    ranks: Ranks, allocator: Any, prompts=PROMPTS, n0: int = 4, **settings: Any
) -> Mapping[str, Any]:
    """A step of one optimizer step or more through the real engine: gradients and record."""
    policy = SharedPrefixLM(tiny())
    engine = RankedEngine(SharedPrefixEngine(policy), ranks)
    gradients: list[dict[str, torch.Tensor]] = []

    def optimize() -> float:
        grads = {
            name: torch.zeros_like(p) if p.grad is None else p.grad
            for name, p in policy.model.named_parameters()
        }
        ranks.sum_tensors(list(grads.values()))
        gradients.append({name: grad.clone() for name, grad in grads.items()})
        policy.zero_grad(set_to_none=True)
        return 1.0

    loss = PolicyLoss()
    update = PolicyUpdate(
        policy=policy, loss=loss, optimize=optimize, backward=torch.Tensor.backward, ranks=ranks,
        settings=UpdateSettings(**settings),
    )  # fmt: skip
    pieces = Pieces(
        success=DiscountedBeta(), allocator=allocator, engine=engine, verifier=even,
        advantage=PerResponse(maxrl), loss=loss, n0=n0,
    )  # fmt: skip
    candidates = SequenceCandidates(prompts, engine, even, Words(), PARAMS, fill=update.fill)
    record = run_step(pieces, candidates, update)
    return {
        "gradients": gradients, "counts": record.plan.counts, "metrics": record.learned.metrics,
        "trials": record.outcomes.trials, "successes": record.outcomes.successes,
        "past": pieces.success.state_dict(), "table": contents(candidates.rollouts),
    }  # fmt: skip


def steps(ranks: Ranks) -> dict[str, Mapping[str, Any]]:
    """Steps whose rounds are empty on a rank or on all."""
    return {
        "pilot of the whole budget": step(ranks, PilotWaterlineAllocator(m=4, n_max=8), n0=4),
        "pilot": step(ranks, PilotWaterlineAllocator(m=4, n_max=16), n0=6),
        "a prompt on one rank alone": step(ranks, WaterlineAllocator(), PROMPTS[:1], n0=16),
        "minibatches": step(ranks, WaterlineAllocator(), n0=8, minibatches=2),
        "small rows": step(ranks, WaterlineAllocator(), n0=8, max_tokens=12),
    }


def columns(ranks: Ranks) -> dict[str, np.ndarray]:
    """The token columns of a table whose rows are shared out."""
    _, policy = pair()
    table = contents_table()
    leaves = table.leaf_nodes()
    mine = leaves[np.isin(table.roots()[leaves], ranks.mine(3))]
    passed = ColumnPass(policy, SharedPrefixLM(tiny("qwen3")), 0.8, ranks)
    names = ("old_logp", "ref_logp", "entropy")
    return passed.fill(table, pack_leaves(table, mine, 40), names, lambda *_: None).columns


def contents_table() -> Rollouts:
    """Three prompts with a response or more each."""
    table = Rollouts.from_prompts([3, -5, 8], [[1, 2], [3], [4, 5, 6]])
    engine = Numbered()
    return engine.extend(table, np.arange(3), np.array([3, 1, 2]), PARAMS)


def everything(ranks: Ranks) -> dict[str, Any]:
    """All of the above in one pair of processes, for their start takes long."""
    works: dict[str, Work] = {
        "grow": grow, "fail": fail, "sums": sums, "share": share, "steps": steps,
        "columns": columns,
    }  # fmt: skip
    return {name: work(ranks) for name, work in works.items() if ranks.world > 1 or name != "sums"}
