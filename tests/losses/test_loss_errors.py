"""Bad options and tensors are one sentence."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from losses.test_loss_terms import random_batch
from waterline.losses import PolicyLoss, loss_denominator, policy_loss

BAD_OPTIONS = [
    ({"normalisation": "token-sum"}, "normalisation=token-sum: must be one of token-mean"),
    ({"normalisation": "seqnorm"}, "length_cap=null"),
    ({"normalisation": "seqnorm", "length_cap": 0}, "length_cap=0"),
    ({"clip_low": 1.0}, "clip_low=1.0"),
    ({"clip_low": -0.1}, "clip_low=-0.1"),
    ({"clip_high": -0.1}, "clip_high=-0.1"),
    ({"clip_high": math.nan}, "clip_high=nan"),
    ({"dual_clip": 1.0}, "dual_clip=1.0"),
    ({"kl": "k4"}, "kl=k4: must be one of k1"),
    ({"kl_coef": 0.1}, "needs a KL estimator"),
    ({"kl": "k1", "kl_coef": math.inf}, "kl_coef=inf"),
    ({"entropy_coef": math.nan}, "entropy_coef=nan"),
]


def core() -> dict:
    batch = random_batch(0, 3, 4)
    return {x: batch[x] for x in ("logp", "old_logp", "advantage", "weight", "mask")}


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_options_are_refused_at_construction_and_at_the_call(options: dict, message: str) -> None:
    for call in (lambda: PolicyLoss(**options), lambda: policy_loss(**core(), **options)):
        with pytest.raises(ValueError, match=message) as error:
            call()
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("logp", (3, 5)),
        ("old_logp", (3,)),
        ("advantage", (4,)),
        ("advantage", (3, 5)),
        ("weight", (3, 4)),
        ("ref_logp", (2, 4)),
        ("entropy", (3,)),
    ],
)
def test_shapes_must_fit(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=rf"{name} has the shape"):
        policy_loss(**(core() | {name: torch.zeros(shape)}))


def test_mask_must_be_boolean_rows() -> None:
    batch = core()
    with pytest.raises(ValueError, match="mask must be a bool tensor"):
        policy_loss(**(batch | {"mask": batch["mask"].long()}))
    with pytest.raises(ValueError, match="mask must be a bool tensor"):
        policy_loss(**(batch | {"mask": batch["mask"][0]}))


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({"kl": "k2", "kl_coef": 0.1}, "ref_logp"),
        ({"entropy_coef": 0.1}, "entropy"),
    ],
)
def test_a_term_needs_its_tensors(options: dict, missing: str) -> None:
    with pytest.raises(ValueError, match=f"{missing} is missing"):
        policy_loss(**core(), **options)


def test_measurements_of_terms_that_are_off_are_ignored() -> None:
    extra = {"ref_logp": torch.full((3, 4), math.nan), "entropy": torch.ones(3, 4)}
    assert torch.equal(policy_loss(**core(), **extra), policy_loss(**core()))


def test_a_step_without_response_tokens_is_refused() -> None:
    batch = core()
    batch["mask"] = torch.zeros_like(batch["mask"])
    with pytest.raises(ValueError, match="no valid response token"):
        policy_loss(**batch)
    with pytest.raises(ValueError, match="denominator of the step is nan"):
        policy_loss(**core(), denominator=math.nan)


def test_lengths_must_be_one_per_response() -> None:
    with pytest.raises(ValueError, match=r"lengths must have the shape \(R,\)"):
        loss_denominator(torch.zeros(2, 3), "token-mean")


def test_needs_follow_the_coefficients() -> None:
    off = PolicyLoss(kl="k3")
    assert not any((off.needs_reference, off.needs_entropy))
    assert dataclasses.replace(off, kl_coef=0.1).needs_reference
    assert dataclasses.replace(off, entropy_coef=0.1).needs_entropy


def test_nan_in_a_valid_token_reaches_the_loss() -> None:
    batch = core()
    batch["mask"][0, 0] = True
    batch["logp"] = batch["logp"].detach().clone()
    batch["logp"][0, 0] = math.nan
    assert policy_loss(**batch).isnan()
