"""One denominator per step: every split gives the same gradient, and padding has no part in it."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from losses.test_loss_terms import OPTIONS, random_batch
from waterline.losses import PolicyLoss, has_signal, loss_denominator, policy_loss

TRAINED = ("logp", "entropy")


def rows_of(batch: dict, rows: list[int]) -> dict:
    return {name: x[rows] for name, x in batch.items()}


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), OPTIONS, st.data())
def test_every_split_gives_the_same_gradient(seed, rows, options, data) -> None:
    batch = random_batch(seed, rows, 4)
    batch["mask"][0, 0] = True
    loss = PolicyLoss(**options)
    denominator = loss.denominator(batch["mask"].sum(1))
    part = data.draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    # Four micro-batches, some of which may be empty, with their rows in any order.
    order = data.draw(st.permutations(range(rows)))
    parts = [[i for i in order if part[i] == j] for j in range(4)]
    split = sum(loss(**rows_of(batch, p), denominator=denominator) for p in parts)
    whole = loss(**batch)
    torch.testing.assert_close(split, whole)
    tensors = [batch[name] for name in TRAINED]
    for mine, reference in zip(
        torch.autograd.grad(split, tensors, allow_unused=True),
        torch.autograd.grad(whole, tensors, allow_unused=True),
        strict=True,
    ):
        torch.testing.assert_close(mine, reference)


@settings(deadline=None)
@given(st.integers(0, 10**6), OPTIONS, st.sampled_from([math.nan, math.inf, -math.inf]))
def test_what_the_mask_hides_has_no_influence(seed, options, garbage) -> None:
    batch = random_batch(seed, 4, 5)
    batch["mask"][0, 0] = True
    dirty = {
        name: x.detach().masked_fill(~batch["mask"], garbage).requires_grad_()
        if x.ndim == 2 and name != "mask"
        else x
        for name, x in batch.items()
    }
    clean, other = policy_loss(**batch, **options), policy_loss(**dirty, **options)
    assert torch.equal(clean, other)
    mine, reference = (
        torch.autograd.grad(other, dirty["logp"]),
        torch.autograd.grad(clean, batch["logp"]),
    )
    assert torch.equal(mine[0], reference[0])


@pytest.mark.parametrize("normalisation", ["token-mean", "seqnorm", "sequence-mean"])
def test_denominators(normalisation: str) -> None:
    lengths = torch.tensor([3, 0, 7, 180])
    expected = {"token-mean": 190, "seqnorm": 4 * 180, "sequence-mean": 4}[normalisation]
    assert loss_denominator(lengths, normalisation, 180) == expected
    assert loss_denominator(lengths[:0], normalisation, 180) == 0


@pytest.mark.parametrize("normalisation", ["token-mean", "seqnorm", "sequence-mean"])
def test_a_response_without_tokens_adds_nothing(normalisation: str) -> None:
    batch = random_batch(0, 3, 4)
    batch["mask"] = torch.tensor([[True] * 3 + [False], [False] * 4, [True] * 4])
    core = {x: batch[x] for x in ("logp", "old_logp", "advantage", "weight", "mask")}
    options = {"normalisation": normalisation, "length_cap": 4}
    denominator = loss_denominator(core["mask"].sum(1), normalisation, 4)
    whole = policy_loss(**core, **options)
    rest = policy_loss(**rows_of(core, [0, 2]), **options, denominator=denominator)
    torch.testing.assert_close(whole, rest)
    gradient = torch.autograd.grad(whole, batch["logp"])[0]
    assert gradient.isfinite().all()
    assert not gradient[1].any()


def test_a_rank_without_responses_takes_part_with_zero() -> None:
    logp = torch.zeros(0, 7, requires_grad=True)
    loss = policy_loss(
        logp=logp,
        old_logp=logp,
        advantage=torch.zeros(0),
        weight=torch.zeros(0),
        mask=torch.zeros(0, 7, dtype=torch.bool),
        denominator=12.0,
    )
    loss.backward()
    assert loss.item() == 0
    assert logp.grad is not None


def test_signal() -> None:
    one, zero = torch.ones(2), torch.zeros(2)
    assert has_signal(torch.tensor([0.0, -1.0]), one)
    assert has_signal(torch.tensor([[0.0, 0.0], [0.0, 2.0]]), one)
    assert has_signal(torch.tensor([0.0, math.nan]), one)
    assert not has_signal(zero, one)
    assert not has_signal(torch.tensor([[1.0, 1.0], [0.0, 0.0]]), torch.tensor([0.0, 1.0]))
    assert not has_signal(torch.zeros(0), torch.zeros(0))


@pytest.mark.parametrize("options", [{"kl": "k3", "kl_coef": 0.1}, {"entropy_coef": 0.1}])
def test_terms_without_advantages_act_without_them(options: dict) -> None:
    assert not PolicyLoss().acts_without_advantage
    assert PolicyLoss(**options).acts_without_advantage
