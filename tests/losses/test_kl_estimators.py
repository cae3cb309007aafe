"""KL estimators by exact enumeration over a categorical policy."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from waterline.losses import kl_estimate

LOGITS = torch.tensor([0.3, -1.0, 0.8, 0.1], dtype=torch.float64)
REFERENCE = torch.log_softmax(torch.tensor([-0.4, 0.2, 0.9, -0.6], dtype=torch.float64), dim=0)


def kl(p_logp: Tensor, q_logp: Tensor) -> Tensor:
    return (p_logp.exp() * (p_logp - q_logp)).sum()


def expectation(kind: str) -> tuple[Tensor, Tensor]:
    """E[estimate] and E[∇ estimate] under samples of the policy."""
    logits = LOGITS.clone().requires_grad_()
    logp = torch.log_softmax(logits, dim=0)
    value = (logp.exp().detach() * kl_estimate(logp, REFERENCE, kind)).sum()
    return value, torch.autograd.grad(value, logits)[0]


def gradient(forward: bool) -> Tensor:
    logits = LOGITS.clone().requires_grad_()
    logp = torch.log_softmax(logits, dim=0)
    divergence = kl(REFERENCE, logp) if forward else kl(logp, REFERENCE)
    return torch.autograd.grad(divergence, logits)[0]


@pytest.mark.parametrize("kind", ["k1", "k3"])
def test_unbiased_values(kind: str) -> None:
    exact = kl(torch.log_softmax(LOGITS, dim=0), REFERENCE)
    torch.testing.assert_close(expectation(kind)[0], exact)


def test_k2_is_half_the_mean_squared_log_ratio() -> None:
    logp = torch.log_softmax(LOGITS, dim=0)
    exact = (logp.exp() * (logp - REFERENCE) ** 2).sum() / 2
    torch.testing.assert_close(expectation("k2")[0], exact)


def test_mean_gradients() -> None:
    torch.testing.assert_close(expectation("k1")[1], torch.zeros(4, dtype=torch.float64))
    torch.testing.assert_close(expectation("k2")[1], gradient(forward=False))
    torch.testing.assert_close(expectation("k3")[1], gradient(forward=True))


def test_k3_is_never_negative_and_stays_finite() -> None:
    logp = torch.linspace(-200, 0, 401)
    estimate = kl_estimate(logp, torch.full((401,), -3.0), "k3")
    assert estimate.isfinite().all()
    assert kl_estimate(logp, logp, "k3").eq(0).all()
    assert (estimate[logp > -23] >= 0).all()
    assert estimate.min() >= 0


def test_unknown_estimator() -> None:
    with pytest.raises(ValueError, match="'k4' is unknown"):
        kl_estimate(LOGITS, REFERENCE, "k4")
