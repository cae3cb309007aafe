"""Gradients of several methods at the same parameters, on the same images."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from waterline.advantages import PerResponse, maxrl
from waterline.allocation import OneShotAllocator, fidelity
from waterline.losses import CrossEntropy, class_loss
from waterline.policies import ImageClassifier
from waterline.rollouts import Ranks
from waterline.runs import stream_key
from waterline.training.labels.batches import StepImages
from waterline.training.labels.candidates import LabelCandidates, LabelResponses
from waterline.training.labels.stage import cosine
from waterline.training.step import Learned, Pieces, StepRecord, run_step

Row = dict[str, Any]


@dataclass(frozen=True)
class SharedBatch:
    """Candidate images under one policy, with the graph of one forward pass in training mode.

    BatchNorm uses the batch's statistics and leaves its running ones as they are.
    """

    step: StepImages
    log_probs: Tensor
    parameters: list[Tensor]

    @staticmethod
    def of(policy: ImageClassifier, step: StepImages) -> SharedBatch:
        """The forward pass."""
        policy.train()
        for module in policy.modules():
            if isinstance(module, _BatchNorm):
                module.momentum = 0.0
        device = next(policy.parameters()).device
        log_probs = policy(step.images.pixels.to(device)).double().log_softmax(dim=1)
        return SharedBatch(step, log_probs, list(policy.parameters()))

    def gradient(self, weights: Tensor, denominator: float) -> Tensor:
        """The gradient of :func:`class_loss` as one float64 vector over all parameters."""
        loss = class_loss(self.log_probs, weights.to(self.log_probs.device), denominator)
        parts = torch.autograd.grad(loss, self.parameters, retain_graph=True)
        return torch.cat([part.double().flatten() for part in parts])

    @property
    def one_hot(self) -> Tensor:
        """(B, C) weights of cross-entropy."""
        labels = torch.from_numpy(self.step.images.labels)
        return CrossEntropy.weights(labels, self.log_probs.shape[1])


def compare_gradients(
    batch: SharedBatch, pieces: Pieces, seed: int, resamplings: int
) -> tuple[list[Row], list[Row]]:
    """Cosines of a method's gradients to that of cross-entropy, and κ of each image.

    Kinds of cosines: 'sample', one per resampling (noise and bias); 'mean', of the mean gradient
    over the resamplings; and 'expected', of the expectation in closed form (bias alone),

        E[H] = (1/B) Σ_{q∈A} w_q (N_q/N0) κ(p_q, N_q) ∇(−log p_q),

    for the MaxRL advantage under counts that do not depend on the batch's outcomes (SERA,
    Equations 11 and 21).

    Args:
        seed: of the samples. resamplings: gradients per kind 'sample', at least 1.

    Returns:
        Rows with kind, resample and cosine; rows with prompt, p, n, kappa_before = κ(p, N0),
        kappa_after = κ(p, n), active.
    """
    count = float(len(batch.step.images.ids))
    exact = batch.gradient(batch.one_hot, count)
    rows: list[Row] = []
    mean = torch.zeros_like(exact)
    for resample in range(resamplings):
        record, gradient = _sampled(batch, pieces, stream_key(seed, "gradients", resample))
        rows.append(_row("sample", resample, gradient, exact))
        mean += gradient / resamplings
    rows.append(_row("mean", -1, mean, exact))
    if _has_closed_form(pieces):
        plan = record.plan
        assert record.p is not None
        factor = plan.weights * plan.counts / pieces.n0 * fidelity(record.p, plan.counts)
        weights = batch.one_hot * torch.from_numpy(factor)[:, None]
        rows.append(_row("expected", -1, batch.gradient(weights, count), exact))
    return rows, _fidelities(record, pieces.n0)


def _sampled(batch: SharedBatch, pieces: Pieces, key: int) -> tuple[StepRecord, Tensor]:
    found: list[Tensor] = []
    candidates = LabelCandidates(
        batch.step, batch.log_probs, pieces.engine, pieces.verifier, Ranks(), key
    )

    def learn(responses: LabelResponses, advantage: Tensor, weight: Tensor) -> Learned:
        table, denominator, _ = candidates.table(pieces.loss, responses, advantage, weight)
        found.append(batch.gradient(table, denominator))
        return Learned({}, stepped=False)

    return run_step(pieces, candidates, learn), found[0]


def _has_closed_form(pieces: Pieces) -> bool:
    adapted = pieces.advantage
    advantage = adapted.function if isinstance(adapted, PerResponse) else None
    if not (isinstance(advantage, partial) and advantage.func is maxrl):
        return False
    centred = advantage.keywords.get("eps", 0.0) == 0.0  # κ is the factor of that estimator alone
    return centred and isinstance(pieces.allocator, OneShotAllocator)


def _row(kind: str, resample: int, gradient: Tensor, exact: Tensor) -> Row:
    return {"kind": kind, "resample": resample, "cosine": cosine([gradient], [exact])}


def _fidelities(record: StepRecord, n0: int) -> list[Row]:
    p, active, n = record.p, record.plan.active, record.outcomes.trials
    assert p is not None
    before = fidelity(p, np.full(len(p), n0))
    after = np.where(active, fidelity(p, n), 0.0)
    columns = {
        "prompt": record.ids, "p": p, "n": n,
        "kappa_before": before, "kappa_after": after, "active": active,
    }  # fmt: skip
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]
