"""Training an image classifier from sampled labels, or from the likelihood itself."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from waterline.evaluation import Subject
from waterline.losses import CrossEntropy, LabelSamples, class_loss
from waterline.policies import ImageClassifier
from waterline.runs import BadInput, stream_key
from waterline.tasks.images import Images, ImageTask, loader, mislabelled
from waterline.training.labels.batches import StepBatches, StepImages
from waterline.training.labels.candidates import LabelCandidates, LabelResponses
from waterline.training.non_finite import NonFinite
from waterline.training.optimizer import OptimizerSettings
from waterline.training.reinforcement import ReinforcementStage
from waterline.training.stage import Row
from waterline.training.step import Ints, Learned, Pieces

log = logging.getLogger("waterline")
_TRIED = 32  # images over the whole split, of which one can be read as a rule


class LabelStage(ReinforcementStage):
    """One optimizer step per batch of images, from a table of sampled labels.

    Args:
        policy, task, pieces: see :class:`ReinforcementStage`; the loss is one that has
            ``over_labels``.
        batch: candidate images B per step, over all ranks; the last of an epoch may be smaller.
        step_on_no_signal: whether the optimizer steps although nothing has a gradient.
        diagnostics_every: steps between measurements of the cosine of Equation 47; 0 for never.
        workers: loader processes.

    Raises:
        BadInput: There are fewer training images than one batch, or the network does not fit them.
    """

    responses: ClassVar[str] = "labels"
    policy: ImageClassifier

    def __init__(
        self,
        policy: ImageClassifier,
        task: ImageTask,
        pieces: Pieces,
        *,
        optimizer: OptimizerSettings,
        batch: int,
        steps: int,
        seed: int,
        step_on_no_signal: bool = False,
        diagnostics_every: int = 0,
        workers: int = 0,
    ) -> None:
        train = task.splits["train"]
        if batch > len(train):
            raise BadInput(
                f"training.batch={batch} is above the {len(train)} training images: lower it, or "
                "raise task.train."
            )
        require_fitting_network(policy, task)
        # A loss that labels do not have, such as a KL term, is found here.
        pieces.loss.over_labels(LabelSamples.none(task.classes))
        if pieces.advantage.reads:
            raise BadInput(
                f"The advantage reads the token columns {', '.join(pieces.advantage.reads)}, which "
                "labels do not have: choose another one."
            )
        self.batches = StepBatches(train, batch, seed)
        super().__init__(
            policy, task, pieces, optimizer=optimizer, steps=steps, seed=seed,
            per_epoch=self.batches.per_epoch,
        )  # fmt: skip
        self.workers = workers
        self.step_on_no_signal, self.diagnostics_every = step_on_no_signal, diagnostics_every
        self.unreadable: set[int] = set()
        self.reference: list[Tensor] | None = None  # of cross-entropy, while it is measured

    def train_dataloader(self) -> Iterable[Any]:
        """The batches of the steps still to do, this rank's images of each."""
        self.batches.rank, self.batches.world = self.ranks.rank, self.ranks.world
        return loader(self.batches, range(self.done, self.steps), self.workers)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, index: int) -> Any:
        """Leaves the batch to the step, which moves the pixels alone."""
        return batch

    def training_step(self, batch: StepImages, _: int) -> None:  # type: ignore[override]
        self.loaded = batch
        super().training_step(self.done, _)

    def candidates(self, step: int) -> LabelCandidates | None:
        """The readable images of the step; None when no rank has one."""
        log_probs, count = self._read(self.loaded)
        self.batch_of: LabelCandidates | None = None
        if count:
            self.batch_of = LabelCandidates(
                self.loaded, log_probs, self.pieces.engine, self.pieces.verifier, self.ranks,
                stream_key(self.seed, "rollout", step), lambda k, ids: self._further(step, k, ids),
            )  # fmt: skip
        return self.batch_of

    def subject(self) -> Subject:
        return replace(super().subject(), workers=self.workers)

    def _further(self, step: int, k: int, taken: Ints) -> tuple[StepImages, Tensor]:
        # Images that cannot be read are no candidates, but they were taken all the same.
        lost = {*self.loaded.ids.tolist(), *self.unreadable}
        new = self.batches.further(step, [*taken.tolist(), *lost], k)
        return new, self._read(new)[0]

    def _read(self, step: StepImages) -> tuple[Tensor, int]:
        """Log π (b, C) of this rank's images, and the number of images over all ranks."""
        self._note_unreadable(step.images)
        log_probs = self.log_probs(step.images)
        wrong = mislabelled(step.images, self.task.classes)
        finite = bool(log_probs.isfinite().all())
        parts = self.ranks.gather((len(step.images.ids), finite, wrong))
        if sentences := [sentence for *_, part in parts for sentence in part]:
            raise BadInput(sentences[0])
        if not all(part for _, part, _ in parts):
            raise NonFinite("probability of some label is no number", _contents([step.images]))
        return log_probs, sum(count for count, *_ in parts)

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

    def learn(self, responses: LabelResponses, advantage: Tensor, weight: Tensor) -> Learned:
        """One optimizer step; the reference gradient is of the same forward pass."""
        assert self.batch_of is not None
        log_probs, truth = self.batch_of.log_probs, torch.from_numpy(self.batch_of.truth)
        table, denominator, signal = self.batch_of.table(
            self.pieces.loss, responses, advantage, weight
        )
        loss = class_loss(log_probs, table.to(log_probs.device), denominator)
        with torch.no_grad():
            entropy = float(-(log_probs.exp() * log_probs).sum())
        sums = self.ranks.gather((float(loss.detach()), entropy, len(log_probs)))
        total, entropies, count = (sum(values) for values in zip(*sums, strict=True))
        self.seen: Row = {"loss/value": total, "policy/entropy": entropies / count}
        steps = signal or self.step_on_no_signal
        try:
            if not np.isfinite(total):
                raise NonFinite(f"loss is {total}")
            if steps:
                if self.diagnostics_every and (self.done + 1) % self.diagnostics_every == 0:
                    self.reference = self._cross_entropy_gradient(log_probs, truth, count)
                if loss.requires_grad:
                    self.backward_loss(loss)
                self.seen["grad/norm"] = self.optimize()
        except NonFinite as error:
            error.batch = _contents([self.loaded.images]) | {"weights": table}
            raise
        return Learned(self.seen, stepped=steps)

    def _cross_entropy_gradient(self, log_probs: Tensor, truth: Tensor, count: int) -> list[Tensor]:
        """∇L_CE over all ``count`` candidates of all ranks; the graph is kept."""
        parameters = list(self.policy.parameters())
        if not log_probs.requires_grad:  # this rank has no image
            return [torch.zeros_like(p) for p in parameters]
        one_hot = CrossEntropy.weights(truth.to(log_probs.device), self.task.classes)
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

    def _metrics(self, seconds: float) -> Row:
        return super()._metrics(seconds) | {"data/unreadable": float(len(self.unreadable))}

    def run_state(self) -> dict[str, Any]:
        return super().run_state() | {"unreadable": sorted(self.unreadable)}

    def load_run_state(self, state: dict[str, Any]) -> None:
        super().load_run_state(state)
        self.unreadable = set(state["unreadable"])


def cosine(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    """⟨a, b⟩ / (‖a‖ ‖b‖) over all tensors together, accumulated in float64 (SERA, Equation 47).

    NaN when either is zero.
    """
    device = a[0].device
    dot, aa, bb = (torch.zeros((), dtype=torch.float64, device=device) for _ in range(3))
    for x, y in zip(a, b, strict=True):
        x, y = x.double().flatten(), y.double().flatten()
        dot, aa, bb = dot + x @ y, aa + x @ x, bb + y @ y
    value = float(dot / (aa.sqrt() * bb.sqrt()))
    return min(1.0, max(-1.0, value)) if value == value else value


def _contents(images: Sequence[Images]) -> dict[str, Tensor]:
    """Images as a file can hold them."""
    return {
        "pixels": torch.cat([part.pixels for part in images]),
        "ids": torch.cat([torch.from_numpy(part.ids) for part in images]),
        "labels": torch.cat([torch.from_numpy(part.labels) for part in images]),
    }


@torch.no_grad()
def require_fitting_network(policy: ImageClassifier, task: ImageTask) -> None:
    """Raise BadInput unless the network gives the task's images a logit for each class.

    Also when none of the images that are tried can be read: a run would learn nothing from them.
    """
    split = task.splits["train"]
    tried = split.load(range(0, len(split), -(-len(split) // _TRIED)), None)
    pixels = tried.pixels[:1]
    if not len(pixels):
        first = tried.unreadable[0]
        raise BadInput(
            f"None of the {len(tried.unreadable)} images tried of the split 'train' can be read, "
            f"the first {first.name} ({first.reason}): check the data."
        )
    policy.eval()
    try:
        logits = policy(pixels)
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise BadInput(
            f"The network of policy.model cannot read images of the shape {tuple(pixels.shape[1:])}"
            f" ({reason}): choose another policy, or change its settings."
        ) from error
    finally:
        policy.train()
    if logits.shape != (1, task.classes):
        raise BadInput(
            f"The network of policy.model gives outputs of the shape {tuple(logits.shape[1:])} for "
            f"{task.classes} classes: leave policy.model.classes as it is, and set task.classes."
        )
