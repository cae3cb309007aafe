"""The mean gradient of a step on images, over every outcome that its labels may have."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from training.label_outcomes import (
    IDS,
    Chosen,
    classifier,
    expected_gradient,
    gradient_of,
    pieces_of,
    step_gradient,
    success_probabilities,
)
from waterline.allocation import (
    NoRollouts,
    Outcomes,
    PilotWaterlineAllocator,
    Request,
    UniformAllocator,
    WaterlineAllocator,
)
from waterline.losses import CrossEntropy
from waterline.success import DiscountedBeta


def kappa(p, n):
    """κ(p, n) = 1 − (1 − p)^(n − 1), and 0 without a rollout."""
    return 1 - (1 - p) ** (n - 1) if n else 0.0


def phi(p, terms):
    """Φ_T(p) = −Σ_{k=1..T} (1 − p)^k / k, the log-likelihood truncated after T terms."""
    return -sum((1 - p) ** k / k for k in range(1, terms + 1)) if terms else 0 * p


def history(successes, trials):
    """Estimates from an earlier epoch, which are not the policy's probabilities."""
    beta = DiscountedBeta()
    beta.observe(IDS, trials, successes)
    beta.end_epoch()
    return beta


def formula(policy, plan, factor):
    """−(1/B) Σ_{q ∈ A} factor_q κ(p_q, N_q) ∇log p_q, by autograd on p_q."""
    p = success_probabilities(policy)
    total = 0.0
    for q in range(3):
        if plan.active[q]:
            scale = factor[q] * kappa(float(p[q].detach()), int(plan.counts[q]))
            total = total - scale * gradient_of(p[q].log(), policy) / 3
    return total


def truncated_likelihood(policy, plan):
    """The gradient of −(1/B) Σ_{q ∈ A} Φ_{N_q − 1}(p_q), by autograd."""
    p = success_probabilities(policy)
    value = sum(phi(p[q], int(plan.counts[q]) - 1) for q in range(3) if plan.active[q])
    return gradient_of(-value / 3, policy)


def close(mean, expected):
    torch.testing.assert_close(mean, expected, rtol=1e-11, atol=1e-13)
    assert float(expected.abs().max()) > 1e-2


@pytest.mark.parametrize("n0", [2, 3])
def test_uniform_counts_give_the_truncated_likelihood(n0):
    policy = classifier()
    plan, mean = expected_gradient(policy, UniformAllocator(), n0)
    assert plan.counts.tolist() == [n0] * 3
    close(mean, formula(policy, plan, [1, 1, 1]))
    close(mean, truncated_likelihood(policy, plan))


@pytest.mark.parametrize(
    ("biases", "u0", "dropped"), [((0.0, 0.0, 0.0), 0.0, 0), ((3.5, 0.0, -0.5), 0.1, 1)]
)
def test_the_waterline_gives_the_truncated_likelihood_of_its_counts(biases, u0, dropped):
    policy = classifier(*biases)
    plan, mean = expected_gradient(policy, WaterlineAllocator(n_max=5, u0=u0), 2 + (u0 == 0))
    assert len(set(plan.counts.tolist())) > 1
    assert (~plan.active).sum() == dropped
    close(mean, formula(policy, plan, [1, 1, 1]))
    close(mean, truncated_likelihood(policy, plan))


@pytest.mark.parametrize("successes", [[1, 14, 8], [15, 9, 2]])
def test_it_does_so_whatever_the_estimates(successes):
    policy = classifier()
    trials = [15, 15, 15]
    plan, mean = expected_gradient(
        policy, WaterlineAllocator(n_max=6, u0=0.2), 2, success=lambda: history(successes, trials)
    )
    assert len(set(plan.counts.tolist())) > 1
    close(mean, formula(policy, plan, [1, 1, 1]))
    close(mean, truncated_likelihood(policy, plan))


@pytest.mark.parametrize(("biases", "n0"), [((0.0, 0.0, 0.0), 3), ((3.5, 0.0, -0.5), 2)])
def test_without_the_correction_prompts_count_by_their_rollouts(biases, n0):
    policy = classifier(*biases)
    allocator = WaterlineAllocator(n_max=5, u0=0.1, correct=False)
    plan, mean = expected_gradient(policy, allocator, n0)
    assert plan.counts.max() > n0
    close(mean, formula(policy, plan, plan.counts / n0))
    assert not torch.allclose(mean, formula(policy, plan, [1, 1, 1]), rtol=0.01)


def test_cross_entropy_is_the_whole_likelihood_and_draws_nothing():
    policy = classifier()
    pieces = replace(pieces_of(NoRollouts()), loss=CrossEntropy(), engine=Silent())
    gradient, record = step_gradient(pieces, policy)
    p = success_probabilities(policy)
    close(gradient, gradient_of(-p.log().sum() / 3, policy))
    assert record.outcomes.trials.tolist() == [0, 0, 0]
    # It is the limit of the truncated one: Φ_T(p) → log p.
    deep = gradient_of(-sum(phi(x, 800) for x in p) / 3, policy)
    torch.testing.assert_close(deep, gradient, rtol=1e-9, atol=1e-12)


class Silent:
    """An engine of which nothing is asked."""

    def sample(self, probability, ids, counts, first, key):
        assert not counts.any()
        return Chosen([[], [], []]).sample(probability, ids, counts, first, key)


def test_a_pilot_estimates_and_its_rollouts_go_on_from_where_it_ended():
    # Right are 0 of 3, 3 of 3 and 1 of 3.
    pilot = [[0, 2, 0], [0, 0, 0], [2, 0, 1]]
    successes = np.array([0, 3, 1])
    allocator = PilotWaterlineAllocator(m=3, n_max=8, u0=0.0)
    request = Request(p=np.full(3, 0.5), known=np.ones(3, dtype=bool), n0=5)
    assert allocator.start(request).counts.tolist() == [3, 3, 3]
    further = allocator.next(Outcomes(trials=np.array([3, 3, 3]), successes=successes))
    engine = Chosen(pilot, [[1] * n for n in further.counts.tolist()])
    _, record = step_gradient(pieces_of(allocator, engine, 5), classifier())
    assert engine.first == [[0, 0, 0], [3, 3, 3]]
    np.testing.assert_allclose(record.p_hat, [1 / 16, 15 / 16, 1 / 3], rtol=1e-15)
    assert record.known.all()
    assert record.outcomes.trials.sum() == 15
    assert record.outcomes.trials.tolist() == (3 + further.counts).tolist()
    # All further labels are 1, which is right for the first image alone.
    assert record.outcomes.successes.tolist() == (successes + further.counts * [1, 0, 0]).tolist()


def test_a_pilot_of_the_whole_budget_asks_for_an_empty_second_round():
    pilot = [[0, 2, 0], [0, 0, 0], [2, 0, 1]]
    engine = Chosen(pilot, [[], [], []])
    allocator = PilotWaterlineAllocator(m=3, n_max=8, u0=0.0)
    gradient, record = step_gradient(pieces_of(allocator, engine, 3), classifier())
    assert engine.first == [[0, 0, 0], [3, 3, 3]]
    assert record.plan.counts.tolist() == [0, 0, 0]
    assert record.outcomes.trials.tolist() == [3, 3, 3]
    assert record.outcomes.successes.tolist() == [0, 3, 1]
    assert record.outcomes.columns["reward"].tolist() == [0, 3, 1]
    # What is learned from is the pilot: the same labels under uniform counts.
    uniform = pieces_of(UniformAllocator(), Chosen(pilot), 3)
    assert torch.equal(gradient, step_gradient(uniform, classifier())[0])
