"""Every outcome that the samples of one step on images may have, through the real step."""

import itertools
from collections.abc import Iterator
from math import factorial, prod

import numpy as np
import torch
from torch import nn

from waterline.advantages import maxrl
from waterline.losses import PolicyLoss
from waterline.policies import ImageClassifier
from waterline.rollouts import Labels
from waterline.success import Oracle
from waterline.tasks.images import Images
from waterline.training.images.batches import StepImages
from waterline.training.images.step import ImagePieces
from waterline.training.ranks import Ranks

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
    """An engine that samples what it is told: a list of labels for each image and round."""

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


def pieces_of(allocator, engine=None, n0=2, success=None, advantage=maxrl) -> ImagePieces:
    return ImagePieces(
        success=success or Oracle(), allocator=allocator, engine=engine, advantage=advantage,
        loss=PolicyLoss(), n0=n0, ranks=Ranks(),
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
