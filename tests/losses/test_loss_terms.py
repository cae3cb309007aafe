"""The loss against the same equation written out token by token in plain Python."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from waterline.losses import PolicyLoss, policy_loss

F64 = torch.float64
OPTIONS = st.fixed_dictionaries(
    {
        "normalisation": st.sampled_from(["token-mean", "seqnorm", "sequence-mean"]),
        "length_cap": st.integers(1, 9),
        "clip_low": st.none() | st.sampled_from([0.0, 0.2]),
        "clip_high": st.none() | st.sampled_from([0.0, 0.28]),
        "dual_clip": st.none() | st.sampled_from([1.5, 3.0]),
        "kl": st.sampled_from(["k1", "k2", "k3"]),
        "kl_coef": st.sampled_from([0.0, 0.3]),
        "entropy_coef": st.sampled_from([0.0, 0.01, -0.2]),
    }
)


def random_batch(seed: int, rows: int, width: int, *, per_token: bool = True) -> dict[str, Tensor]:
    """Tensors of `rows` responses with lengths from 0 to `width`, holes in the mask included."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=F64)

    old = normal(rows, width) - 2
    return {
        "logp": (old + 0.5 * normal(rows, width)).requires_grad_(),
        "old_logp": old,
        "advantage": normal(rows, width) if per_token else normal(rows),
        "weight": normal(rows).abs(),
        "mask": torch.rand(rows, width, generator=generator) < 0.6,
        "ref_logp": old + 0.3 * normal(rows, width),
        "entropy": normal(rows, width).abs().requires_grad_(),
    }


def plain_token_loss(batch: dict, i: int, t: int, options: dict) -> float:
    def at(name: str) -> float:
        x = batch[name]
        return float(x.detach()[i, t] if x.ndim == 2 else x.detach()[i])

    a = at("advantage") * at("weight")
    ratio = math.exp(at("logp") - at("old_logp"))
    low = -math.inf if options["clip_low"] is None else 1 - options["clip_low"]
    high = math.inf if options["clip_high"] is None else 1 + options["clip_high"]
    loss = max(-a * ratio, -a * min(max(ratio, low), high))
    if options["dual_clip"] is not None and a < 0:
        loss = min(loss, -a * options["dual_clip"])
    delta = at("logp") - at("ref_logp")
    kl = {"k1": delta, "k2": delta**2 / 2, "k3": math.exp(-delta) + delta - 1}[options["kl"]]
    loss += options["kl_coef"] * kl - options["entropy_coef"] * at("entropy")
    return loss


def plain_loss(batch: dict, options: dict) -> float:
    rows = []
    for i, mask in enumerate(batch["mask"].tolist()):
        tokens = [t for t, valid in enumerate(mask) if valid]
        rows.append([plain_token_loss(batch, i, t, options) for t in tokens])
    if options["normalisation"] == "token-mean":
        return sum(map(sum, rows)) / sum(map(len, rows))
    if options["normalisation"] == "seqnorm":
        return sum(map(sum, rows)) / (len(rows) * options["length_cap"])
    return sum(sum(row) / len(row) for row in rows if row) / len(rows)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 6), st.booleans(), OPTIONS)
def test_loss_is_the_equation(seed, rows, width, per_token, options) -> None:
    batch = random_batch(seed, rows, width, per_token=per_token)
    batch["mask"][0, 0] = True
    actual = policy_loss(**batch, **options)
    assert actual.item() == pytest.approx(plain_loss(batch, options), rel=1e-10, abs=1e-12)
    assert torch.equal(PolicyLoss(**options)(**batch), actual)


@settings(deadline=None)
@given(st.integers(0, 10**6), OPTIONS)
def test_gradient_is_that_of_finite_differences(seed, options) -> None:
    batch = random_batch(seed, 3, 3)
    # Away from the kinks of the clips, where the loss has no derivative.
    ratio = (batch["logp"] - batch["old_logp"]).exp()
    for kink in (0.8, 1.0, 1.28, 1.5, 3.0):
        batch["mask"] &= (ratio - kink).abs() > 1e-3
    names = ["logp", "entropy"]

    def loss(*tensors: Tensor) -> Tensor:
        moved = batch | dict(zip(names, tensors, strict=True))
        return policy_loss(**moved, **options, denominator=7.0)

    assert torch.autograd.gradcheck(loss, [batch[name] for name in names])


@pytest.mark.parametrize("normalisation", ["token-mean", "seqnorm", "sequence-mean"])
def test_on_policy_gradient_is_the_weighted_advantage(normalisation: str) -> None:
    batch = random_batch(0, 4, 5, per_token=False)
    logp, mask = batch["logp"], batch["mask"]
    names = ("advantage", "weight", "mask")
    loss = policy_loss(
        logp=logp,
        old_logp=logp,
        **{name: batch[name] for name in names},
        normalisation=normalisation,
        length_cap=5,
    )
    per_response = {
        "token-mean": torch.full((4,), 1 / int(mask.sum()), dtype=F64),
        "seqnorm": torch.full((4,), 1 / (4 * 5), dtype=F64),
        "sequence-mean": 1 / (4 * mask.sum(1).clamp(min=1).to(F64)),
    }[normalisation]
    expected = -(per_response * batch["advantage"] * batch["weight"])[:, None] * mask
    torch.testing.assert_close(torch.autograd.grad(loss, logp)[0], expected)


def test_clips_leave_the_on_policy_gradient_alone() -> None:
    batch = random_batch(1, 4, 5)
    core = {name: batch[name] for name in ("logp", "advantage", "weight", "mask")}
    core["old_logp"] = batch["logp"].detach()
    plain, clipped = (
        torch.autograd.grad(policy_loss(**core, **options), core["logp"])[0]
        for options in ({}, {"clip_low": 0.2, "clip_high": 0.28, "dual_clip": 3.0})
    )
    assert torch.equal(plain, clipped)


def test_response_weights_commute_with_the_clips() -> None:
    """w A before the surrogate (the code) equals w on the token term (Eqs. 44 and 45)."""
    batch = random_batch(2, 6, 5)
    names = ("logp", "old_logp", "advantage", "mask")
    options = {"clip_low": 0.1, "clip_high": 0.1, "dual_clip": 1.2, "normalisation": "seqnorm"}
    rows = [
        policy_loss(
            **{name: batch[name][i : i + 1] for name in names},
            weight=torch.ones(1, dtype=F64),
            length_cap=5,
            denominator=30.0,
            **options,
        )
        for i in range(6)
    ]
    weight = batch["weight"]
    whole = policy_loss(
        **{name: batch[name] for name in names}, weight=weight, length_cap=5, **options
    )
    torch.testing.assert_close(whole, (torch.stack(rows) * weight).sum())


def test_weights_do_not_touch_kl_and_entropy() -> None:
    batch = random_batch(3, 4, 5)
    batch["advantage"] = torch.zeros(4, dtype=F64)
    options = {"kl": "k3", "kl_coef": 0.1, "entropy_coef": 0.2}
    first = policy_loss(**batch, **options)
    assert first.item() != 0
    assert torch.equal(policy_loss(**(batch | {"weight": 9 * batch["weight"]}), **options), first)


def test_constants_get_no_gradient() -> None:
    batch = random_batch(4, 3, 4)
    constants = ("old_logp", "advantage", "weight", "ref_logp")
    for name in constants:
        batch[name].requires_grad_()
    loss = policy_loss(**batch, kl="k3", kl_coef=1.0, entropy_coef=1.0)
    loss.backward()
    assert all(batch[name].grad is None for name in constants)
    assert all(batch[name].grad.abs().sum() > 0 for name in ("logp", "entropy"))


def test_extreme_ratios_stay_finite() -> None:
    logp = torch.tensor([[-1.0, -1.0]], requires_grad=True)
    loss = policy_loss(
        logp=logp,
        old_logp=torch.tensor([[-500.0, -math.inf]]),
        advantage=torch.ones(1),
        weight=torch.ones(1),
        mask=torch.ones(1, 2, dtype=torch.bool),
    )
    assert loss.item() == pytest.approx(-math.exp(20), rel=1e-6)
    assert torch.autograd.grad(loss, logp)[0].isfinite().all()


def test_half_precision_is_summed_in_float32() -> None:
    batch = random_batch(5, 3, 4)
    core = {name: batch[name] for name in ("old_logp", "advantage", "weight", "mask")}
    loss = policy_loss(logp=batch["logp"].detach().bfloat16(), **core)
    assert loss.dtype == torch.float32
