"""Values, groups, edge cases and errors of the advantages."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from waterline.advantages import dr_grpo, grpo, maxrl, pkpo, reinforce, rloo

F64 = torch.float64
CENTRED = {
    "maxrl": maxrl,
    "grpo": grpo,
    "grpo_no_eps": partial(grpo, eps=0.0),
    "dr_grpo": dr_grpo,
    "rloo": rloo,
}
BINARY = {
    "maxrl": maxrl,
    "maxrl_eps": partial(maxrl, eps=1e-6),
    "pkpo": partial(pkpo, k=2),
    "pkpo_unbiased": partial(pkpo, k=2, form="unbiased"),
}
GRADED = {"grpo": grpo, "grpo0": partial(grpo, ddof=0), "dr_grpo": dr_grpo, "rloo": rloo}
ALL = BINARY | GRADED | {"reinforce": reinforce}
quick = settings(deadline=None, max_examples=50)  # the first call pays for torch's start
ids = st.integers(-(2**63), 2**63 - 1)


def plain(name: str, rewards: list[float]) -> list[float]:
    """The definitions, one group at a time, in plain Python."""
    n, total = len(rewards), math.fsum(rewards)
    mean, c = total / n, sum(r == 1 for r in rewards)
    if name == "reinforce":
        return rewards
    if name == "pkpo_unbiased":
        if n < 2:
            return [0.0]
        return [2.0 if r else 2 * (1 - math.comb(n - 1 - c, 1) / (n - 1)) for r in rewards]
    if n == 1 or len(set(rewards)) == 1:
        return [0.0] * n
    if name == "rloo":
        return [r - (total - r) / (n - 1) for r in rewards]
    if name == "pkpo":
        s = [r * math.comb(n - c, 1) / math.comb(n - 1, 1) for r in rewards]
        return [x - (sum(s) - x) / (n - 1) for x in s]
    ddof = 0 if name == "grpo0" else 1
    std = math.sqrt(math.fsum((r - mean) ** 2 for r in rewards) / (n - ddof))
    scale = {"maxrl": mean, "maxrl_eps": mean + 1e-6, "dr_grpo": 1.0}.get(name, std + 1e-6)
    return [(r - mean) / scale for r in rewards]


@st.composite
def batches(draw, values):
    """Rows (id, reward) of up to six groups of uneven sizes, in a random order."""
    groups = draw(st.dictionaries(ids, st.lists(values, min_size=1, max_size=7), max_size=6))
    rows = [(group, reward) for group, rewards in groups.items() for reward in rewards]
    return groups, draw(st.permutations(rows))


def check_against_plain(name: str, groups: dict, rows: list) -> None:
    rewards = torch.tensor([reward for _, reward in rows], dtype=F64)
    group = torch.tensor([group for group, _ in rows], dtype=torch.int64)
    advantage = ALL[name](rewards, group)
    assert advantage.shape == rewards.shape
    for key, expected in groups.items():
        mine = group == key
        by_reward = dict(zip(expected, plain(name, expected), strict=True))
        wanted = torch.tensor([by_reward[r] for r in rewards[mine].tolist()], dtype=F64)
        torch.testing.assert_close(advantage[mine], wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [*BINARY, "reinforce"])
@quick
@given(batches(st.sampled_from([0.0, 1.0])))
def test_any_ids_order_and_sizes_binary(name, batch) -> None:
    check_against_plain(name, *batch)


@pytest.mark.parametrize("name", GRADED)
@quick
@given(batches(st.integers(-40, 40).map(lambda x: x / 8)))
def test_any_ids_order_and_sizes_graded(name, batch) -> None:
    check_against_plain(name, *batch)


@pytest.mark.parametrize("name", ALL)
@quick
@given(batches(st.sampled_from([0.0, 1.0])), st.randoms(use_true_random=False))
def test_permuting_responses_permutes_advantages(name, batch, random) -> None:
    _, rows = batch
    order = list(range(len(rows)))
    random.shuffle(order)
    rewards = torch.tensor([reward for _, reward in rows])
    group = torch.tensor([group for group, _ in rows], dtype=torch.int64)
    advantage = ALL[name](rewards, group)
    torch.testing.assert_close(ALL[name](rewards[order], group[order]), advantage[order])


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("name", GRADED)
@quick
@given(st.floats(-(2.0**99), 2.0**99, width=32), st.integers(1, 40))
def test_equal_rewards_give_exactly_zero(name, dtype, reward, n) -> None:
    rewards = torch.full((n,), reward, dtype=dtype)
    assert torch.equal(GRADED[name](rewards, torch.zeros(n, dtype=torch.int64)), 0 * rewards)


@pytest.mark.parametrize("name", CENTRED)
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_groups_of_one_and_groups_without_contrast_are_zero(name: str, reward: float) -> None:
    group = torch.tensor([5, -1, -1, 9, 9, 9])
    assert torch.equal(CENTRED[name](torch.full((6,), reward), group), torch.zeros(6))


VECTORS = {
    "grpo": (grpo, 1.620182, -0.540061),
    "grpo population": (partial(grpo, ddof=0), 1.732047, -0.577349),
    "dr_grpo": (dr_grpo, 0.75, -0.25),
    "rloo": (rloo, 0.857143, -0.285714),
    "maxrl": (maxrl, 3.0, -1.0),
    "pkpo unbiased": (partial(pkpo, k=4, form="unbiased"), 8 * 0.5, 8 * 0.357143),
    "pkpo": (partial(pkpo, k=4), 0.489796, -0.163265),
    "reinforce": (reinforce, 1.0, 0.0),
}


@pytest.mark.parametrize("name", VECTORS)
def test_two_right_of_eight(name: str) -> None:
    advantage, right, wrong = VECTORS[name]
    rewards = torch.tensor([0, 1, 0, 0, 0, 0, 1, 0], dtype=F64)
    expected = torch.where(rewards == 1, right, wrong).to(F64)
    actual = advantage(rewards, torch.full((8,), -3))
    torch.testing.assert_close(actual, expected, rtol=0, atol=4e-6)


def test_maxrl_one_right_of_n() -> None:
    advantage = maxrl(torch.eye(16, dtype=F64)[3], torch.zeros(16, dtype=torch.int64))
    torch.testing.assert_close(advantage, 16 * torch.eye(16, dtype=F64)[3] - 1)


@pytest.mark.parametrize("c", range(17))
def test_pkpo_of_the_tables_learns_from_single_successes_only(c: int) -> None:
    rewards = (torch.arange(16) < c).to(F64)
    advantage = pkpo(rewards, torch.zeros(16, dtype=torch.int64))
    expected = torch.where(rewards == 1, 1.0, -1 / 15).to(F64) if c == 1 else torch.zeros(16)
    torch.testing.assert_close(advantage, expected.to(F64))


def test_pkpo_unbiased_keeps_all_right_groups_and_drops_all_wrong_ones() -> None:
    group = torch.tensor([1, 1, 1, 2, 2, 2])
    rewards = torch.tensor([1.0, 1, 1, 0, 0, 0])
    assert pkpo(rewards, group, k=3, form="unbiased").tolist() == [3, 3, 3, 0, 0, 0]


@pytest.mark.parametrize("form", ["loo", "unbiased"])
def test_pkpo_skips_groups_smaller_than_k_and_no_others(form: str) -> None:
    large = torch.tensor([1.0, 0, 0, 0, 0])
    alone = pkpo(large, torch.zeros(5, dtype=torch.int64), k=4, form=form)
    rewards = torch.cat([torch.tensor([1.0, 0, 0]), large])
    mixed = pkpo(rewards, torch.tensor([8, 8, 8, 2, 2, 2, 2, 2]), k=4, form=form)
    assert torch.equal(mixed, torch.cat([torch.zeros(3), alone]))
    assert alone.abs().sum() > 0


def test_pkpo_stays_finite_for_thousands_of_responses() -> None:
    rewards = (torch.arange(4096) < 3).float()
    advantage = pkpo(rewards, torch.zeros(4096, dtype=torch.int64), k=1024)
    s = math.comb(4093, 1023) / math.comb(4095, 1023)
    assert float(advantage[0]) == pytest.approx(s - 2 * s / 4095, rel=1e-4)


@pytest.mark.parametrize("name", ALL)
def test_no_responses_give_no_advantages(name: str) -> None:
    assert ALL[name](torch.zeros(0), torch.zeros(0, dtype=torch.int64)).shape == (0,)


@pytest.mark.parametrize("name", ALL)
def test_precision_follows_the_rewards_and_is_at_least_float32(name: str) -> None:
    group = torch.tensor([4, 4, 4])
    for given_dtype, dtype in [
        (F64, F64),
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.int64, torch.float32),
    ]:
        assert ALL[name](torch.tensor([0, 1, 1]).to(given_dtype), group).dtype == dtype


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("reward", [0.5, -1.0, 2.0, math.nan, math.inf])
def test_binary_algorithms_refuse_other_rewards(name: str, reward: float) -> None:
    with pytest.raises(ValueError, match="response 1 is"):
        BINARY[name](torch.tensor([0.0, reward]), torch.tensor([0, 0]))


@pytest.mark.parametrize("name", [*GRADED, "reinforce"])
def test_rewards_must_be_finite(name: str) -> None:
    with pytest.raises(ValueError, match="response 2 is nan"):
        ALL[name](torch.tensor([0.0, -3.0, math.nan]), torch.tensor([0, 0, 1]))


@pytest.mark.parametrize("name", ALL)
def test_shapes_and_ids_are_checked(name: str) -> None:
    with pytest.raises(ValueError, match=r"shape \(R,\)"):
        ALL[name](torch.zeros(3), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"shape \(R,\)"):
        ALL[name](torch.zeros(2, 2), torch.zeros(2, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match="integer ids"):
        ALL[name](torch.zeros(2), torch.zeros(2))


def test_options_are_checked() -> None:
    rewards, group = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match="ddof=2: must be"):
        grpo(rewards, group, ddof=2)
    with pytest.raises(ValueError, match="k=0: must be"):
        pkpo(rewards, group, k=0)
    with pytest.raises(ValueError, match="form=biased: must be"):
        pkpo(rewards, group, k=1, form="biased")
