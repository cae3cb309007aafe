"""One training step on images, from candidates to a changed policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterline.allocation import Allocator, Outcomes, Plan, Request
from waterline.losses import CrossEntropy, PolicyLoss, label_weights
from waterline.rollouts import Labels, LabelSampler
from waterline.success import Oracle, SuccessEstimate
from waterline.training.clock import Clock
from waterline.training.images.batches import StepImages
from waterline.training.ranks import Ranks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_LEAST, _MOST = np.finfo(np.float64).tiny, np.nextafter(1.0, 0.0)


@dataclass(frozen=True)
class ImagePieces:
    """What a method puts into each room; verifying a label is comparing it with the image's own."""

    success: SuccessEstimate
    allocator: Allocator
    engine: LabelSampler
    advantage: Callable[[Tensor, Tensor], Tensor]
    loss: PolicyLoss | CrossEntropy
    n0: int
    ranks: Ranks


@dataclass(frozen=True, eq=False)
class Candidates:
    """The B readable images of a step over all ranks, in the batch's order, and their exact p.

    ``here`` (b,) are the rows of this rank's images.
    """

    ids: Ints
    p: Floats
    here: Ints


@dataclass(frozen=True, eq=False)
class ImageRecord:
    """What a step did: (B,) arrays over the candidates, and the seconds by stage."""

    ids: Ints
    p: Floats
    p_hat: Floats
    known: NDArray[np.bool_]
    plan: Plan
    trials: Ints
    successes: Ints
    seconds: dict[str, float]


def candidates(step: StepImages, probability: Tensor, ranks: Ranks) -> Candidates:
    """Brings together the exact success probabilities of all ranks.

    p_q is this rank's (b, C) float64 ``probability`` of the image's own label, between the least
    normal float64 and the largest below 1, as in the papers' code.
    """
    images = step.images
    own = probability.cpu().numpy()[np.arange(len(images.ids)), images.labels]
    parts = ranks.gather((images.ids, np.clip(own, _LEAST, _MOST)))
    seen = np.concatenate([ids for ids, _ in parts])
    p = np.concatenate([values for _, values in parts])
    place = {int(i): at for at, i in enumerate(step.ids)}
    order = np.argsort([place[int(i)] for i in seen])
    row = {int(i): at for at, i in enumerate(seen[order])}
    here = np.array([row[int(i)] for i in images.ids], dtype=np.int64)
    return Candidates(seen[order], p[order], here)


def run_image_step(
    pieces: ImagePieces,
    step: StepImages,
    log_probs: Tensor,
    key: int,
    update: Callable[[Tensor, float, bool], None],
) -> ImageRecord:
    """Estimate, allocate, sample, verify, weigh, update, observe: the rooms in their order.

    Args:
        log_probs: (b, C) float64 log π of this rank's images, with gradient: from the one forward
            pass that gives the exact p, the samples and the loss.
        key: of the samples of this step.
        update: takes the loss's (b, C) weights, its denominator, and whether any rank has a signal.
    """
    clock = Clock("allocate", "sample", "verify", "update")
    probability = log_probs.detach().exp()
    batch = candidates(step, probability, pieces.ranks)
    labels, drawn_from = step.images.labels, probability.cpu().numpy()
    if isinstance(pieces.success, Oracle):
        pieces.success.set(batch.ids, batch.p)
    p_hat, known = pieces.success.estimate(batch.ids)
    plan = pieces.allocator.start(Request(p=p_hat, known=known, n0=pieces.n0))
    clock.lap("allocate")

    trials, successes = np.zeros_like(batch.ids), np.zeros_like(batch.ids)
    sampled = Labels(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    further: Plan | None = plan
    while further is not None:
        plan, here = further, batch.here
        new = pieces.engine.sample(
            drawn_from, batch.ids[here], plan.counts[here], trials[here], key
        )
        sampled, trials = sampled + new, trials + plan.counts
        clock.lap("sample")
        right = np.bincount(new.row, weights=new.label == labels[new.row], minlength=len(here))
        for rows, found in pieces.ranks.gather((here, right.astype(np.int64))):
            successes[rows] += found
        clock.lap("verify")
        further = pieces.allocator.next(Outcomes(trials=trials, successes=successes))
        clock.lap("allocate")

    if plan.p_hat is not None:
        p_hat, known = plan.p_hat, np.ones_like(known)
    if isinstance(pieces.loss, CrossEntropy):
        weights, signal = pieces.loss.weights(torch.from_numpy(labels), log_probs.shape[1]), True
        denominator = float(len(batch.ids))
    else:
        row, label = torch.from_numpy(sampled.row), torch.from_numpy(sampled.label)
        reward = (label == torch.from_numpy(labels)[row]).double()
        advantage = pieces.advantage(reward, torch.from_numpy(batch.ids[batch.here])[row])
        weighted = advantage * torch.from_numpy(plan.weights[batch.here])[row]
        weights = label_weights(row, label, weighted, *log_probs.shape)
        signal = any(pieces.ranks.gather(bool(weighted.any())))
        denominator = pieces.loss.denominator(torch.ones(int(trials.sum())))
    update(weights.to(log_probs.device), denominator, signal)
    clock.lap("update")
    pieces.success.observe(batch.ids, trials, successes)
    return ImageRecord(batch.ids, batch.p, p_hat, known, plan, trials, successes, clock.seconds)
