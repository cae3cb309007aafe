"""Two processes over gloo against one: tables, faults, sums, steps and token columns."""

import numpy as np
import pytest
import torch

from rollouts.two_ranks import everything, on_two_ranks
from waterline.rollouts import Ranks

STEPS = ("pilot of the whole budget", "pilot", "a prompt on one rank alone", "minibatches",
         "small rows")  # fmt: skip


@pytest.fixture(scope="module")
def one():
    """What one process gives."""
    return everything(Ranks())


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What each of two ranks gives."""
    return on_two_ranks(everything, tmp_path_factory.mktemp("ranks"))


def same(a, b):
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype
        and (a[name].tolist() == b[name].tolist() or a[name].tobytes() == b[name].tobytes())
        for name in a
    )


def test_every_rank_has_the_table_that_one_rank_would_have_made(one, two):
    """After each round: all of it, the empty ones, turns below observations, further prompts."""
    sizes = [len(table["parent"]) for table in one["grow"]]
    assert sizes[0] == 5, "an empty round adds nothing"
    assert sizes == sorted(sizes)
    assert sizes[-1] > 30
    for rank in two:
        assert len(rank["grow"]) == len(one["grow"])
        for a, b in zip(one["grow"], rank["grow"], strict=True):
            assert same(a, b)


def test_the_fault_of_one_rank_is_raised_on_all(one, two):
    assert one["fail"] == "The engine cannot sample prompt -4."
    assert [rank["fail"] for rank in two] == [one["fail"]] * 2


def test_sums_in_buckets_are_those_of_single_calls(two):
    for rank in two:
        assert len(rank["sums"]) == 9
        for bucketed, alone in rank["sums"]:
            assert torch.equal(bucketed, alone)
    for (a, _), (b, _) in zip(two[0]["sums"], two[1]["sums"], strict=True):
        assert torch.equal(a, b)


def test_rank_0_shares_its_tensor(two):
    assert [rank["share"].item() for rank in two] == [1.0, 1.0]


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_that_of_one_rank(one, two, name):
    expected = one["steps"][name]
    for rank in two:
        found = rank["steps"][name]
        for key in ("counts", "trials", "successes"):
            assert found[key].tolist() == expected[key].tolist()
        assert found["past"] == expected["past"]
        for key in ("tokens", "parent", "sample", "finish", "prompt", "reward", "success"):
            np.testing.assert_array_equal(found["table"][key], expected["table"][key])
        for key, value in expected["metrics"].items():
            assert found["metrics"][key] == pytest.approx(value, rel=1e-4, abs=1e-5)
        assert len(found["gradients"]) == len(expected["gradients"])
        for a, b in zip(found["gradients"], expected["gradients"], strict=True):
            scale = max(float(grad.abs().max()) for grad in b.values())
            for key in b:
                torch.testing.assert_close(a[key], b[key], rtol=0, atol=2e-5 * scale)


def test_the_steps_are_those_that_they_are_named_after(one):
    steps = one["steps"]
    assert steps["pilot of the whole budget"]["counts"].tolist() == [0, 0, 0]
    assert steps["pilot of the whole budget"]["trials"].tolist() == [4, 4, 4]
    assert steps["pilot"]["counts"].sum() == 6
    assert steps["a prompt on one rank alone"]["trials"].tolist() == [16]
    assert len(steps["minibatches"]["gradients"]) == 2
    for name in STEPS:
        gradient = steps[name]["gradients"][0]
        assert max(float(g.abs().max()) for g in gradient.values()) > 0


def test_token_columns_are_shared(one, two):
    names = {"sampled_logp", "old_logp", "ref_logp", "entropy"}
    for rank in two:
        assert rank["columns"].keys() == one["columns"].keys() == names
        for name in names:
            np.testing.assert_allclose(rank["columns"][name], one["columns"][name], atol=1e-5)
            assert same({"c": rank["columns"][name]}, {"c": two[0]["columns"][name]})
    filled = np.isfinite(one["columns"]["old_logp"])
    assert filled.tolist() == np.isfinite(one["columns"]["sampled_logp"]).tolist()
