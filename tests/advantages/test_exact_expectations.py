"""Expectations of the estimators by exact enumeration, against formulas and autograd on p_q."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from advantages.exact_policy import F64, ExactPolicy, expected_estimator
from waterline.advantages import dr_grpo, grpo, maxrl, pkpo, reinforce, rloo

# Prompts with one, two and three right responses of four.
POLICY = ExactPolicy.build([[0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 1]])
GRADED = ExactPolicy.build([[0.1, -2, 0.7, 0.7], [3, 1, 0, -1]])
PROMPTS = range(3)


def p_of(prompt: int) -> Tensor:
    return POLICY.success(POLICY.theta.detach())[prompt]


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_maxrl_expects_fidelity_times_the_log_success_gradient(prompt: int, n: int) -> None:
    kappa = 1 - (1 - p_of(prompt)) ** (n - 1)
    close(expected_estimator(maxrl, POLICY, prompt, n), kappa * POLICY.gradients(torch.log)[prompt])


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_reinforce_is_unbiased(prompt: int, n: int) -> None:
    close(expected_estimator(reinforce, POLICY, prompt, n), POLICY.gradients(lambda p: p)[prompt])


@pytest.mark.parametrize("policy", [POLICY, GRADED], ids=["binary", "graded"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_rloo_is_unbiased(policy: ExactPolicy, n: int) -> None:
    for prompt, expected in enumerate(policy.gradients(lambda p: p)):
        close(expected_estimator(rloo, policy, prompt, n), expected)


@pytest.mark.parametrize("policy", [POLICY, GRADED], ids=["binary", "graded"])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_dr_grpo_shrinks_the_gradient_by_one_response(policy: ExactPolicy, n: int) -> None:
    for prompt, expected in enumerate(policy.gradients(lambda p: p)):
        close(expected_estimator(dr_grpo, policy, prompt, n), (n - 1) / n * expected)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 1), (3, 2), (5, 3), (5, 5), (2, 2)])
def test_unbiased_pkpo_expects_the_gradient_of_pass_at_k(prompt: int, n: int, k: int) -> None:
    advantage = partial(pkpo, k=k, form="unbiased")
    expected = POLICY.gradients(lambda p: 1 - (1 - p) ** k)[prompt]
    close(expected_estimator(advantage, POLICY, prompt, n), expected)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize(("n", "k"), [(3, 1), (3, 2), (5, 3), (5, 5), (2, 2)])
def test_leave_one_out_pkpo_has_the_known_bias(prompt: int, n: int, k: int) -> None:
    p = p_of(prompt)
    factor = (1 - p) ** (k - 2) * ((1 - p) + p * (k - 1) / (n - 1))
    expected = factor * POLICY.gradients(lambda p: p)[prompt]
    close(expected_estimator(partial(pkpo, k=k), POLICY, prompt, n), expected)


def binomial(n: int, p: float) -> Tensor:
    """(n + 1,) probabilities of 0 … n successes."""
    c = torch.arange(n + 1, dtype=F64)
    ways = torch.lgamma(torch.tensor(n + 1.0, dtype=F64)) - torch.lgamma(c + 1)
    ways = ways - torch.lgamma(n - c + 1)
    return (ways + torch.xlogy(c, p) + torch.xlogy(n - c, 1 - p)).exp()


def grpo_factor(n: int, p: float, ddof: int, eps: float) -> float:
    """E[(1/n) Σ A_i S_i] / ∇p from the definition.

    With E[S | r = 1] = ∇p / p and E[S | r = 0] = −∇p / (1 − p).
    """
    total = 0.0
    for c, probability in enumerate(binomial(n, p).tolist()):
        std = (c * (n - c) / n / (n - ddof)) ** 0.5 if n > ddof else 0.0
        right, wrong = (1 - c / n) / (std + eps), (-c / n) / (std + eps)
        total += probability * (c * right / p - (n - c) * wrong / (1 - p)) / n
    return total


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_grpo_expects_the_factor_of_its_definition(prompt: int, ddof: int, n: int) -> None:
    factor = grpo_factor(n, float(p_of(prompt)), ddof, eps=1e-3)
    actual = expected_estimator(partial(grpo, ddof=ddof, eps=1e-3), POLICY, prompt, n)
    close(actual, factor * POLICY.gradients(lambda p: p)[prompt])


def factor_by_counts(advantage, n: int, p: float) -> float:
    """E[(1/n) Σ A_i S_i] / ∇p for large n: one group for each number of successes."""
    c = torch.arange(n + 1)
    rewards = (torch.arange(n) < c[:, None]).to(F64)
    values = advantage(rewards.flatten(), c.repeat_interleave(n)).view_as(rewards)
    score = rewards / p - (1 - rewards) / (1 - p)
    return float(binomial(n, p) @ (values * score).mean(1))


def test_grpo_tends_to_its_population_limit() -> None:
    p = 0.2
    assert factor_by_counts(grpo, 1500, p) == pytest.approx((p * (1 - p)) ** -0.5, rel=2e-3)


@pytest.mark.parametrize(("n", "p", "kappa"), [(4, 0.1, 0.271), (16, 0.02, 0.2614309)])
def test_maxrl_published_fidelities(n: int, p: float, kappa: float) -> None:
    assert p * factor_by_counts(maxrl, n, p) == pytest.approx(kappa, abs=1e-7)


@pytest.mark.parametrize(
    ("n", "k", "p", "unbiased", "loo"),
    [(8, 4, 0.2, 2.048, 0.566857), (16, 16, 0.1, 3.294258, 0.228768)],
)
def test_pkpo_published_expectations(n: int, k: int, p: float, unbiased: float, loo: float) -> None:
    exact = factor_by_counts(partial(pkpo, k=k, form="unbiased"), n, p)
    assert exact == pytest.approx(unbiased, abs=1e-6)
    assert factor_by_counts(partial(pkpo, k=k), n, p) == pytest.approx(loo, abs=1e-6)
