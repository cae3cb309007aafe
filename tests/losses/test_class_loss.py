"""The loss by label counts against the plain sum over responses, and against cross-entropy."""

import functools

import numpy as np
import pytest
import torch
from torch.nn import functional

from waterline.advantages import dr_grpo, grpo, maxrl, pkpo, reinforce, rloo
from waterline.losses import CrossEntropy, LabelSamples, PolicyLoss, class_loss, label_weights

IMAGES, CLASSES = 5, 4
ADVANTAGES = {
    "maxrl": maxrl, "grpo": grpo, "dr_grpo": dr_grpo, "rloo": rloo, "reinforce": reinforce,
    "pkpo": functools.partial(pkpo, k=2),
}  # fmt: skip
NORMALISATIONS = {"token-mean": 1, "sequence-mean": 1, "seqnorm": 3}  # with D over responses


def responses(seed):
    """Labels of groups of unlike sizes, one image without any, in a scrambled order."""
    rng = np.random.default_rng(seed)
    row = torch.from_numpy(rng.permutation(np.repeat(np.arange(IMAGES), [6, 0, 2, 9, 3])))
    label = torch.from_numpy(rng.integers(0, CLASSES, len(row)))
    truth = torch.from_numpy(rng.integers(0, CLASSES, IMAGES))
    weight = torch.from_numpy(rng.uniform(0.2, 3.0, IMAGES))
    weight[3] = 0.0  # an inactive prompt with responses
    logits = torch.from_numpy(rng.standard_normal((IMAGES, CLASSES)))
    return row, label, truth, weight, logits


def value_and_gradient(loss, logits):
    logits = logits.clone().requires_grad_()
    value = loss(logits.log_softmax(dim=1))
    return value.detach(), torch.autograd.grad(value, logits)[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("advantage", ADVANTAGES)
def test_counts_give_the_sum_over_all_responses(advantage, normalisation, seed):
    row, label, truth, weight, logits = responses(seed)
    reward = (label == truth[row]).double()
    value = ADVANTAGES[advantage](reward, 7 * row - 3)
    policy_loss = PolicyLoss(normalisation=normalisation, length_cap=NORMALISATIONS[normalisation])
    ones = torch.ones(len(row), 1, dtype=torch.bool)

    def plain(log_probs):
        logp = log_probs[row, label][:, None]
        return policy_loss(
            logp=logp, old_logp=logp.detach(), advantage=value, weight=weight[row], mask=ones
        )

    def counted(log_probs):
        table = label_weights(row, label, value * weight[row], IMAGES, CLASSES)
        return class_loss(log_probs, table, policy_loss.denominator(torch.ones(len(row))))

    (a, da), (b, db) = value_and_gradient(plain, logits), value_and_gradient(counted, logits)
    # The value of the on-policy surrogate is −(1/D) Σ w A, with a ratio of 1 for log π.
    expected = -(value * weight[row]).sum() / len(row) / NORMALISATIONS[normalisation]
    torch.testing.assert_close(a, expected, rtol=1e-12, atol=1e-14)
    written_out = logits.log_softmax(dim=1)[row, label] * value * weight[row]
    torch.testing.assert_close(
        b, -written_out.sum() / len(row) / NORMALISATIONS[normalisation], rtol=1e-12, atol=1e-14
    )
    torch.testing.assert_close(db, da, rtol=1e-12, atol=1e-14)
    assert da.abs().max() > 1e-3


def test_the_table_of_weights_is_the_sum_by_image_and_label():
    row, label, _, weight, _ = responses(3)
    weighted = weight[row] * torch.linspace(-1, 2, len(row), dtype=torch.float64)
    table = label_weights(row, label, weighted, IMAGES, CLASSES)
    expected = np.zeros((IMAGES, CLASSES))
    for q, a, w in zip(row.tolist(), label.tolist(), weighted.tolist(), strict=True):
        expected[q, a] += w
    np.testing.assert_allclose(table, expected, rtol=1e-13, atol=1e-15)
    assert table.dtype == torch.float64


def test_a_million_responses_in_float32_keep_their_sum():
    n = 1_000_000
    zeros = torch.zeros(n, dtype=torch.int64)
    table = label_weights(zeros, zeros, torch.full((n,), 0.1), 1, 2)
    assert float(table[0, 0]) == pytest.approx(n * float(torch.tensor(0.1)), rel=1e-12)


def test_weights_are_constants():
    weights = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    log_probs = torch.randn(2, 3, dtype=torch.float64).log_softmax(1).requires_grad_()
    class_loss(log_probs, weights, 2.0).backward()
    assert weights.grad is None
    assert torch.equal(log_probs.grad, torch.full((2, 3), -0.5, dtype=torch.float64))


def test_no_image_of_this_rank_gives_a_loss_of_0():
    nothing = torch.zeros(0, 3, dtype=torch.float64)
    assert float(class_loss(nothing, nothing, 8.0)) == 0.0


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_one_hot_weights_give_cross_entropy(scale):
    logits = scale * torch.randn(6, 5, generator=torch.Generator().manual_seed(1)).double()
    labels = torch.tensor([0, 4, 2, 2, 1, 3])

    def counted(log_probs):
        return class_loss(log_probs, CrossEntropy.weights(labels, 5), 6.0)

    value, gradient = value_and_gradient(counted, logits)
    logits.requires_grad_()
    expected = functional.cross_entropy(logits, labels)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-13, atol=0)
    torch.testing.assert_close(
        gradient, torch.autograd.grad(expected, logits)[0], rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("denominator", [0.0, -1.0, float("nan")])
def test_a_step_without_a_response_has_no_denominator(denominator):
    table = torch.zeros(1, 2, dtype=torch.float64)
    with pytest.raises(ValueError, match="at least one response"):
        class_loss(table, table, denominator)


def label_samples(seed):
    row, label, truth, weight, _ = responses(seed)
    weighted = weight[row] * torch.linspace(-1, 2, len(row), dtype=torch.float64)
    return LabelSamples(
        truth=truth, classes=CLASSES, row=row, label=label, weighted=weighted, candidates=11,
        responses=31,
    )  # fmt: skip


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_the_policy_loss_over_labels_has_the_denominator_of_all_ranks(normalisation):
    cap, sampled = NORMALISATIONS[normalisation], label_samples(4)
    loss = PolicyLoss(normalisation=normalisation, length_cap=cap)
    table, denominator = loss.over_labels(sampled)
    assert denominator == 31 * cap
    expected = label_weights(sampled.row, sampled.label, sampled.weighted, IMAGES, CLASSES)
    assert torch.equal(table, expected)


@pytest.mark.parametrize("options", [{"kl": "k3", "kl_coef": 0.1}, {"entropy_coef": 0.1}])
def test_labels_have_no_kl_and_no_entropy_term(options):
    for sampled in (label_samples(0), LabelSamples.none(CLASSES)):
        with pytest.raises(ValueError, match="set kl_coef and entropy_coef to 0") as caught:
            PolicyLoss(**options).over_labels(sampled)
        assert "\n" not in str(caught.value)


def test_cross_entropy_over_labels_reads_no_sample():
    sampled = label_samples(5)
    table, denominator = CrossEntropy().over_labels(sampled)
    assert denominator == 11
    assert table.argmax(dim=1).tolist() == sampled.truth.tolist()
    assert table.sum(dim=1).tolist() == [1.0] * IMAGES
    assert CrossEntropy().acts_without_advantage


def test_a_step_without_a_response_has_an_empty_table_and_a_loss_of_0():
    table, denominator = PolicyLoss().over_labels(LabelSamples.none(CLASSES))
    assert table.shape == (0, CLASSES)
    assert class_loss(table, table, denominator) == 0
