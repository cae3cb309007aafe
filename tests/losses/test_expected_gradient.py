"""The expected gradient of a whole step through the loss: Eqs. 11, 21 and 43 of SERA."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from advantages.exact_policy import F64, ExactPolicy, all_groups, scrambled_ids
from waterline.advantages import maxrl
from waterline.losses import PolicyLoss, loss_denominator, policy_loss

CAP = 5
REWARD = [[0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 1], [1, 0, 0, 0]]
EQUAL_LENGTHS = ExactPolicy.build(REWARD)
UNEQUAL_LENGTHS = ExactPolicy.build([[0, 0, 1], [0, 1, 1], [1, 0, 0]], early_stop=True)
# What a loss per unit of (1/M) Σ w A S becomes: responses of T = 2 tokens, or a cap of 5.
SCALE = {"token-mean": 1 / 2, "seqnorm": 1 / CAP, "sequence-mean": 1 / 2}


def paper_gradient(policy: ExactPolicy, counts: list[int], multiplicity: list[float]) -> Tensor:
    """(1/B) Σ_{q ∈ A} multiplicity_q κ(p_q, N_q) ∇log p_q, by autograd on p_q."""
    p = policy.success(policy.theta.detach())
    kappa = torch.tensor(
        [1 - (1 - x) ** (n - 1) if n else 0.0 for x, n in zip(p.tolist(), counts, strict=True)],
        dtype=F64,
    )
    factor = kappa * torch.tensor(multiplicity, dtype=F64)
    return factor @ policy.gradients(torch.log) / len(counts)


def expected_gradient(
    policy: ExactPolicy, counts: list[int], weights: list[float], loss: PolicyLoss
) -> Tensor:
    """Exact expected gradient of one step: all outcomes of all prompts in one loss.

    Given the counts the loss is a sum over prompts, so that its expectation is a sum over the
    outcomes of each group, with the outcome's probability as a factor on the response weight.
    """
    prompts, responses, weight, ids = [], [], [], []
    for prompt, n in enumerate(counts):
        if n == 0:
            continue
        outcomes, probability = all_groups(policy, prompt, n)
        prompts.append(torch.full((outcomes.numel(),), prompt))
        responses.append(outcomes.flatten())
        weight.append((weights[prompt] * probability).repeat_interleave(n))
        ids.append(scrambled_ids(len(outcomes), n, seed=prompt)[0] + prompt)
    order = torch.randperm(sum(map(len, ids)), generator=torch.Generator().manual_seed(3))
    q, y, w, group = (torch.cat(x)[order] for x in (prompts, responses, weight, ids))
    advantage = maxrl(policy.reward[q, y], group)
    theta = policy.theta
    logp = policy.token_logp(theta)[q, y]
    one_step = torch.full((sum(counts),), 2)
    value = loss(
        logp=logp,
        old_logp=logp,
        advantage=advantage,
        weight=w,
        mask=policy.mask[y],
        denominator=loss.denominator(one_step),
    )
    return torch.autograd.grad(value, theta)[0]


COUNTS = {
    "uniform": [3, 3, 3, 3],
    "uneven": [2, 1, 4, 5],
    "inactive prompts": [0, 6, 0, 6],
}


@pytest.mark.parametrize("normalisation", SCALE)
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_weights_restore_one_weight_per_prompt(counts: list[int], normalisation: str) -> None:
    n0 = sum(counts) / len(counts)
    weights = [n0 / n if n else 0.0 for n in counts]
    loss = PolicyLoss(normalisation=normalisation, length_cap=CAP)
    actual = expected_gradient(EQUAL_LENGTHS, counts, weights, loss)
    expected = -SCALE[normalisation] * paper_gradient(EQUAL_LENGTHS, counts, [1.0] * 4)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("normalisation", SCALE)
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_without_weights_prompts_count_by_their_rollouts(
    counts: list[int], normalisation: str
) -> None:
    n0 = sum(counts) / len(counts)
    loss = PolicyLoss(normalisation=normalisation, length_cap=CAP)
    actual = expected_gradient(EQUAL_LENGTHS, counts, [1.0] * 4, loss)
    multiplicity = [n / n0 for n in counts]
    expected = -SCALE[normalisation] * paper_gradient(EQUAL_LENGTHS, counts, multiplicity)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)


def test_seqnorm_holds_for_responses_of_different_lengths() -> None:
    counts, weights = [4, 2, 3], [3 / 4, 3 / 2, 3 / 3]
    loss = PolicyLoss(normalisation="seqnorm", length_cap=CAP)
    actual = expected_gradient(UNEQUAL_LENGTHS, counts, weights, loss)
    expected = -paper_gradient(UNEQUAL_LENGTHS, counts, [1.0] * 3) / CAP
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)


def test_every_joint_outcome_of_a_step_one_by_one() -> None:
    """The same as above without the sum over prompts: one loss per outcome of the whole step."""
    policy, counts, n0 = UNEQUAL_LENGTHS, [0, 2, 4], 2
    prompt = torch.tensor([1, 1, 2, 2, 2, 2])
    weight = torch.tensor([n0 / counts[q] for q in prompt.tolist()], dtype=F64)
    group = torch.tensor([7, 7, -4, -4, -4, -4])
    denominator = loss_denominator(torch.full((6,), 2), "seqnorm", CAP)
    theta = policy.theta
    token_logp, logp = policy.token_logp(theta), policy.logp(theta.detach())
    total = torch.zeros((), dtype=F64)
    for outcome in itertools.product(range(3), repeat=6):
        y = torch.tensor(outcome)
        total = total + logp[prompt, y].sum().exp() * policy_loss(
            logp=token_logp[prompt, y],
            old_logp=token_logp[prompt, y],
            advantage=maxrl(policy.reward[prompt, y], group),
            weight=weight,
            mask=policy.mask[y],
            normalisation="seqnorm",
            length_cap=CAP,
            denominator=denominator,
        )
    actual = torch.autograd.grad(total, theta)[0]
    expected = -paper_gradient(policy, counts, [1.0] * 3) / CAP
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)
