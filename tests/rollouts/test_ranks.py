"""The processes of a run, in one process; ``test_two_ranks`` has two."""

import pytest
import torch

from waterline.rollouts import Ranks, is_first_process
from waterline.rollouts import ranks as ranks_module
from waterline.runs import BadInput


@pytest.mark.parametrize(
    ("environment", "first"),
    [
        ({}, True),
        ({"LOCAL_RANK": "0"}, True),
        ({"LOCAL_RANK": "1"}, False),
        ({"NODE_RANK": "1", "LOCAL_RANK": "0"}, False),
        ({"SLURM_PROCID": "3"}, False),
        ({"RANK": "2", "LOCAL_RANK": "0"}, False),
    ],
)
def test_the_first_process_is_known_before_there_is_a_group(monkeypatch, environment, first):
    for name in ("RANK", "SLURM_PROCID", "NODE_RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_first_process({"devices": 2, "num_nodes": 1}) is first
    assert is_first_process({"devices": 1, "num_nodes": 2}) is first
    assert is_first_process({"devices": 1, "num_nodes": 1}), "of its own run, whose job it is in"


def test_a_rank_that_is_no_number_is_a_sentence(monkeypatch):
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(BadInput, match="RANK=first"):
        is_first_process({"devices": 2, "num_nodes": 1})


def test_one_process_is_all_ranks():
    ranks = Ranks()
    assert (ranks.world, ranks.rank, ranks.mine(3)) == (1, 0, [0, 1, 2])
    assert ranks.gather("x") == ["x"]
    tensor = torch.tensor([1.5])
    ranks.sum_tensors([tensor])
    ranks.share([tensor])
    ranks.wait()
    assert tensor.item() == 1.5


def test_buckets_hold_all_tensors_in_order_and_one_type_each(monkeypatch):
    monkeypatch.setattr(ranks_module, "_BUCKET", 10)
    sizes = [3, 4, 3, 1, 25, 2, 0, 8]
    tensors = [torch.zeros(size) for size in sizes]
    tensors[5] = tensors[5].double()
    buckets = list(ranks_module._buckets(tensors))
    # A tensor above the limit travels alone.
    assert [[t.numel() for t in bucket] for bucket in buckets] == [
        [3, 4, 3],
        [1],
        [25],
        [2],
        [0, 8],
    ]
    flat = [t for bucket in buckets for t in bucket]
    assert all(a is b for a, b in zip(flat, tensors, strict=True))
    assert list(ranks_module._buckets([])) == []
