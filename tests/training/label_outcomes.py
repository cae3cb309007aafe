"""Every outcome that the samples of one step on images may have, through the real step."""

import itertools
from collections.abc import Iterator
from math import factorial, prod

import numpy as np
import pytest
import torch
from torch import nn

from waterline.advantages import maxrl
from waterline.allocation import Plan
from waterline.losses import PolicyLoss, class_loss
from waterline.policies import ImageClassifier
from waterline.rewards import LabelVerifier
from waterline.rollouts import Labels, Ranks
from waterline.success import Oracle
from waterline.tasks.images import Images
from waterline.training.assemble import token_level
from waterline.training.labels.batches import StepImages
from waterline.training.labels.candidates import LabelCandidates
from waterline.training.step import Learned, Pieces, StepRecord, run_step

CLASSES = 3
IDS, LABELS = np.array([70, -3, 41]), np.array([1, 0, 2])
UNREADABLE = 99  # a candidate of the batch that is not among its images


def step_images() -> StepImages:
    """Three images of 2×2 pixels, and one more candidate that could not be read."""
    pixels = torch.tensor(
        [[0.9, -1.2, 0.4, 0.1], [-0.3, 0.8, 1.1, -0.7], [1.5, 0.2, -0.6, 0.5]], dtype=torch.float64
    )
    images = Images(pixels.view(3, 1, 2, 2), IDS, LABELS)
    return StepImages(np.insert(IDS, 1, UNREADABLE), images)


def classifier(*biases: float) -> ImageClassifier:
    """A linear float64 classifier; the biases of the classes make p unlike."""
    linear = nn.Linear(4, CLASSES).double()
    with torch.no_grad():
        linear.weight.copy_(torch.linspace(-0.9, 1.1, 12).view(3, 4))
        linear.bias.copy_(torch.tensor(biases or (0.0, 0.0, 0.0)))
    return ImageClassifier(nn.Sequential(nn.Flatten(), linear))


class Chosen:
    """An engine that samples what was chosen: a list of labels for each image and round."""

    def __init__(self, *rounds):
        self.rounds = list(rounds)
        self.first = []

    def sample(self, probability, ids, counts, first, key):
        outcome = self.rounds.pop(0)
        assert ids.tolist() == IDS.tolist()
        assert [len(labels) for labels in outcome] == counts.tolist()
        np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-12)
        self.first.append(first.tolist())
        row = np.repeat(np.arange(len(ids)), counts)
        return Labels(row, np.array([a for labels in outcome for a in labels], dtype=np.int64))


def pieces_of(allocator, engine=None, n0=2, success=None, advantage=maxrl) -> Pieces:
    return Pieces(
        success=success or Oracle(), allocator=allocator, engine=engine, verifier=LabelVerifier(),
        advantage=token_level(advantage), loss=PolicyLoss(), n0=n0,
    )  # fmt: skip


def outcomes(counts, probability) -> Iterator[tuple[tuple[tuple[int, ...], ...], float]]:
    """Every outcome of ``counts`` labels for each image, with its probability.

    Labels of an image are exchangeable: multisets, times the number of their orders.
    """
    groups = [
        list(itertools.combinations_with_replacement(range(CLASSES), n)) for n in counts.tolist()
    ]
    for outcome in itertools.product(*groups):
        chance = prod(
            factorial(len(labels)) / prod(factorial(labels.count(a)) for a in range(CLASSES))
            * prod(probability[q][a] for a in labels)
            for q, labels in enumerate(outcome)
        )  # fmt: skip
        yield outcome, chance


def success_probabilities(policy) -> torch.Tensor:
    """(3,) p_q = π(y_q|q) with its graph, from the softmax written out."""
    logits = policy(step_images().images.pixels)
    share = logits.exp() / logits.exp().sum(dim=1, keepdim=True)
    return share[torch.arange(3), torch.from_numpy(LABELS)]


def gradient_of(value, policy) -> torch.Tensor:
    """One vector over all parameters."""
    parts = torch.autograd.grad(value, list(policy.parameters()), retain_graph=True)
    return torch.cat([part.flatten() for part in parts])


def step_gradient(pieces, policy) -> tuple[torch.Tensor, StepRecord]:
    """The gradient that one step hands to the optimizer, and the step's record."""
    step, found = step_images(), []
    log_probs = policy(step.images.pixels).double().log_softmax(dim=1)
    candidates = LabelCandidates(step, log_probs, pieces.engine, pieces.verifier, Ranks(), key=0)

    def learn(responses, advantage, weight):
        weights, denominator, signal = candidates.table(pieces.loss, responses, advantage, weight)
        found.append(gradient_of(class_loss(log_probs, weights, denominator), policy))
        assert signal == bool(weights.any())
        return Learned({}, stepped=signal)

    record = run_step(pieces, candidates, learn)
    return found[0], record


def expected_gradient(policy, allocator, n0, success=None) -> tuple[Plan, torch.Tensor]:
    """Σ over outcomes of probability × the gradient of the step; and the plan."""
    pixels = step_images().images.pixels
    probability = policy(pixels).softmax(dim=1).tolist()
    p = success_probabilities(policy).detach().numpy()
    p_hat = success().estimate(IDS)[0] if success else p
    plan = allocator.plan(p_hat, n0=n0)
    mean, mass = 0.0, 0.0
    for outcome, chance in outcomes(plan.counts, probability):
        pieces = pieces_of(allocator, Chosen(outcome), n0, success() if success else None)
        gradient, record = step_gradient(pieces, policy)
        mean, mass = mean + chance * gradient, mass + chance
        np.testing.assert_allclose(record.p, p, rtol=1e-13)
        np.testing.assert_array_equal(record.plan.counts, plan.counts)
    assert mass == pytest.approx(1.0, abs=1e-12)
    return plan, mean
