"""Training an image classifier from sampled labels, or from the likelihood itself."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from waterline.losses import CrossEntropy, class_loss
from waterline.policies import ImageClassifier
from waterline.runs import BadInput, stream_key
from waterline.tasks.images import Images, ImageTask
from waterline.training.images.batches import StepBatches, StepImages, loader, mislabelled
from waterline.training.images.gradients import cosine
from waterline.training.images.metrics import sampling_metrics
from waterline.training.images.step import ImagePieces, ImageRecord, run_image_step
from waterline.training.metrics import allocation_frame
from waterline.training.non_finite import NonFinite
from waterline.training.stage import OptimizerSettings, Row, Stage

log = logging.getLogger("waterline")


class ImageStage(Stage):
    """One :func:`run_image_step` per training step over the split ``train``.

    Args:
        pieces: what the method puts into the rooms.
        batch: candidate images B per step, over all ranks; the last of an epoch may be smaller.
        step_on_no_signal: whether the optimizer steps although nothing has a gradient.
        diagnostics_every: steps between measurements of the cosine of Equation 47; 0 for never.
        workers: loader processes.
    """

    policy: ImageClassifier

    def __init__(
        self,
        policy: ImageClassifier,
        task: ImageTask,
        pieces: ImagePieces,
        *,
        optimizer: OptimizerSettings,
        batch: int,
        steps: int,
        seed: int,
        step_on_no_signal: bool = False,
        diagnostics_every: int = 0,
        workers: int = 0,
    ) -> None:
        super().__init__(policy, optimizer, steps, seed)
        self.task, self.batch, self.workers = task, batch, workers
        self.pieces = replace(pieces, ranks=self.ranks)
        self.step_on_no_signal, self.diagnostics_every = step_on_no_signal, diagnostics_every
        self.totals = {"rollouts": 0, "skipped": 0}
        self.unreadable: set[int] = set()
        self.record: ImageRecord | None = None
        self.batches = StepBatches(task.splits["train"], batch, seed)
        self.reference: list[Tensor] | None = None  # of cross-entropy, while it is measured

    def train_dataloader(self) -> Iterable[Any]:
        """The batches of the steps still to do, this rank's images of each."""
        self.batches.rank, self.batches.world = self.ranks.rank, self.ranks.world
        return loader(self.batches, range(self.done, self.steps), self.workers)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, index: int) -> Any:
        """Leaves the batch to the step, which moves the pixels alone."""
        return batch

    def training_step(self, batch: StepImages, _: int) -> None:  # type: ignore[override]
        self.candidates = batch
        super().training_step(self.done, _)

    def take_step(self, step: int) -> Row:
        began = time.perf_counter()
        images = self.candidates.images
        self._note_unreadable(images)
        common = {
            "epoch": step // self.batches.per_epoch,
            "lr": self.settings.lr_at(step, self.steps),
        }
        self.seen: Row = {"loss/value": float("nan"), "grad/norm": float("nan")}
        self.record, self.skipped = None, True
        log_probs = self.log_probs(images)
        told = mislabelled(images, self.task.classes)
        parts = self.ranks.gather((len(images.ids), bool(log_probs.isfinite().all()), told))
        if sentences := [sentence for *_, part in parts for sentence in part]:
            raise BadInput(sentences[0])
        if not all(finite for _, finite, _ in parts):
            raise NonFinite("probability of some label is no number", self._contents())
        if any(count for count, *_ in parts):
            key = stream_key(self.seed, "rollout", step)
            self.record = run_image_step(
                self.pieces, self.candidates, log_probs, key,
                lambda *weights: self._update(log_probs, *weights),
            )  # fmt: skip
        self.totals["skipped"] += self.skipped
        if (step + 1) % self.batches.per_epoch == 0:
            self.pieces.success.end_epoch()
        seconds = time.perf_counter() - began
        row = common | self.seen | {"grad/skipped": float(self.totals["skipped"])}
        row["data/unreadable"] = float(len(self.unreadable))
        if self.record is not None:
            row |= {f"time/{stage}": spent for stage, spent in self.record.seconds.items()}
            if not isinstance(self.pieces.loss, CrossEntropy):
                row |= sampling_metrics(self.record, self.totals, seconds)
        return row | {"time/step": seconds}

    def log_probs(self, images: Images) -> Tensor:
        """(b, C) float64 log π of this rank's images, which may be none."""
        if not len(images.ids):
            return torch.zeros(0, self.task.classes, dtype=torch.float64, device=self.device)
        try:
            logits = self.policy(images.pixels.to(self.device))
        except ValueError as error:  # a single image, of which a channel has a single value
            raise BadInput(
                f"BatchNorm has no statistics of this batch ({error}): choose another "
                "training.batch or larger images, or set policy.frozen_batch_norm=true."
            ) from error
        return logits.double().log_softmax(dim=1)

    def _update(self, log_probs: Tensor, weights: Tensor, denominator: float, signal: bool) -> None:
        """One optimizer step; the reference gradient is of the same forward pass."""
        loss = class_loss(log_probs, weights, denominator)
        with torch.no_grad():
            entropy = float(-(log_probs.exp() * log_probs).sum())
        parts = self.ranks.gather((float(loss.detach()), entropy, len(log_probs)))
        total, entropies, count = (sum(values) for values in zip(*parts, strict=True))
        self.seen |= {"loss/value": total, "policy/entropy": entropies / count}
        self.skipped = not (signal or self.step_on_no_signal)
        try:
            if not np.isfinite(total):
                raise NonFinite(f"loss is {total}")
            if self.skipped:
                return
            if self.diagnostics_every and (self.done + 1) % self.diagnostics_every == 0:
                self.reference = self._cross_entropy_gradient(log_probs, count)
            if loss.requires_grad:
                self.backward_loss(loss)
            self.seen["grad/norm"] = self.optimize()
        except NonFinite as error:
            error.batch = self._contents() | {"weights": weights}
            raise

    def _contents(self) -> dict[str, Tensor]:
        """This rank's images of the step, as a file can hold them."""
        images = self.candidates.images
        ids, labels = torch.from_numpy(images.ids), torch.from_numpy(images.labels)
        return {"pixels": images.pixels, "ids": ids, "labels": labels}

    def _cross_entropy_gradient(self, log_probs: Tensor, count: int) -> list[Tensor]:
        """∇L_CE over all ``count`` candidates of all ranks; the graph is kept."""
        parameters = list(self.policy.parameters())
        if not log_probs.requires_grad:  # this rank has no image
            return [torch.zeros_like(p) for p in parameters]
        labels = torch.from_numpy(self.candidates.images.labels).to(log_probs.device)
        one_hot = CrossEntropy.weights(labels, self.task.classes)
        loss = class_loss(log_probs, one_hot, float(count))
        return list(torch.autograd.grad(loss, parameters, retain_graph=True))

    def observe_gradient(self) -> None:
        """The cosine between the gradient of the sampled loss and that of cross-entropy."""
        if self.reference is None:
            return
        self.ranks.sum_tensors(self.reference)
        gradient = [p.grad for p in self.policy.parameters() if p.grad is not None]
        self.seen["grad/cosine_ce"] = cosine(gradient, self.reference)
        self.reference = None

    def _note_unreadable(self, images: Images) -> None:
        for part in self.ranks.gather(images.unreadable):
            for image in part:
                if image.id not in self.unreadable:
                    log.warning(
                        "image %d (%s) cannot be read and is left out: %s",
                        image.id, image.name, image.reason,
                    )  # fmt: skip
                self.unreadable.add(image.id)

    def allocation(self) -> pd.DataFrame | None:
        if self.record is None or isinstance(self.pieces.loss, CrossEntropy):
            return None
        return allocation_frame(self.record)

    def skips(self) -> int | None:
        without_signal = self.skipped and self.record is not None  # else without an image
        return self.totals["skipped"] if without_signal else None

    def run_state(self) -> dict[str, Any]:
        return super().run_state() | {
            "success": self.pieces.success.state_dict(),
            "totals": dict(self.totals),
            "unreadable": sorted(self.unreadable),
        }

    def load_run_state(self, state: dict[str, Any]) -> None:
        super().load_run_state(state)
        self.pieces.success.load_state_dict(state["success"])
        self.totals.update(state["totals"])
        self.unreadable = set(state["unreadable"])
