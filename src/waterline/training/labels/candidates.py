"""Candidates whose responses are one class label each: the count table of a step on images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterline.allocation import LEAST_P, MOST_P, Outcomes, Plan
from waterline.losses import LabelLoss, LabelSamples, has_signal
from waterline.rewards import Verifier
from waterline.rollouts import Labels, LabelSampler, Ranks
from waterline.training.labels.batches import StepImages
from waterline.training.step import Bools, Clock, Floats, Ints


@dataclass(frozen=True, eq=False)
class LabelResponses:
    """R labels sampled for this rank's images; see :class:`Responses`.

    ``image`` (R,) is the row of this rank's image, ``label`` (R,) the label.
    """

    row: Ints
    group: Ints
    success: Bools
    reward: Floats
    image: Ints
    label: Ints
    columns: dict[str, Tensor] = field(default_factory=dict)

    @property
    def length(self) -> Ints:
        return np.ones(len(self.row), dtype=np.int64)

    def kept(self, mask: Bools) -> LabelResponses:
        """Those of ``mask`` (R,) alone."""
        return LabelResponses(
            row=self.row[mask], group=self.group[mask], success=self.success[mask],
            reward=self.reward[mask], image=self.image[mask], label=self.label[mask],
        )  # fmt: skip


class LabelCandidates:
    """The B readable images of a step over all ranks, in the batch's order.

    ``here`` (b,) are the rows of this rank's images, whose labels are ``truth`` (b,) and whose
    log π ``log_probs`` (b, C) in float64, with gradient: from the one forward pass that gives the
    exact p, the samples and the loss.

    Args:
        engine: draws labels. verifier: judges them. key: of the samples of this step.
        add: loads up to k further images, not among those with the given ids, with their log π.
    """

    def __init__(
        self,
        step: StepImages,
        log_probs: Tensor,
        engine: LabelSampler,
        verifier: Verifier,
        ranks: Ranks,
        key: int,
        add: Callable[[int, Ints], tuple[StepImages, Tensor]] | None = None,
    ) -> None:
        self.clock = Clock()
        self.engine, self.verifier, self.ranks = engine, verifier, ranks
        self.key, self.add = key, add
        nothing: Ints = np.empty(0, dtype=np.int64)
        self.ids, self.here, self.truth = nothing, nothing, nothing
        self.p: Floats | None = np.empty(0)
        self.drawn_from: NDArray[np.float64] = np.empty((0, log_probs.shape[1]))
        self.log_probs = log_probs[:0]
        self.sampled, self.judged = Labels(nothing, nothing), (np.empty(0, bool), np.empty(0))
        self._append(step, log_probs)
        self.trials: Ints = np.zeros_like(self.ids)
        self.successes, self.reward = self.trials.copy(), np.zeros(len(self.ids))

    def _append(self, step: StepImages, log_probs: Tensor) -> None:
        """Brings together the exact success probabilities of new images on all ranks."""
        images = step.images
        probability = log_probs.detach().exp().cpu().numpy()
        own = probability[np.arange(len(images.ids)), images.labels]
        parts = self.ranks.gather((images.ids, np.clip(own, LEAST_P, MOST_P)))
        seen = np.concatenate([ids for ids, _ in parts])
        p = np.concatenate([values for _, values in parts])
        place = {int(i): at for at, i in enumerate(step.ids)}
        order = np.argsort([place[int(i)] for i in seen])
        row = {int(i): len(self.ids) + at for at, i in enumerate(seen[order])}
        here = np.array([row[int(i)] for i in images.ids], dtype=np.int64)
        self.ids = np.concatenate([self.ids, seen[order]])
        self.p = np.concatenate([self.p, p[order]])
        self.here = np.concatenate([self.here, here])
        self.truth = np.concatenate([self.truth, images.labels])
        self.drawn_from = np.concatenate([self.drawn_from, probability])
        # The first batch's own tensor, not a copy: the loss differentiates it.
        self.log_probs = (
            torch.cat([self.log_probs, log_probs]) if len(self.log_probs) else log_probs
        )

    def sample(self, plan: Plan) -> Outcomes:
        """One round: ``plan.counts`` further labels of each image, judged."""
        here = self.here
        new = self.engine.sample(
            self.drawn_from, self.ids[here], plan.counts[here], self.trials[here], self.key
        )
        self.trials = self.trials + plan.counts
        self.clock.lap("sample")
        complete = np.ones(len(new.row), dtype=bool)
        # Arrays serve as the sequences that a verifier takes.
        answers, responses = cast(Any, (self.truth[new.row], new.label))
        found = self.verifier(answers, responses, complete)
        right = np.bincount(new.row, weights=found.success, minlength=len(here)).astype(np.int64)
        gained = np.bincount(new.row, weights=found.reward, minlength=len(here))
        self.successes, self.reward = self.successes.copy(), self.reward.copy()
        for rows, successes, reward in self.ranks.gather((here, right, gained)):
            self.successes[rows] += successes
            self.reward[rows] += reward
        self.sampled, order = self.sampled.joined(new)
        self.judged = (
            np.concatenate([self.judged[0], found.success])[order],
            np.concatenate([self.judged[1], found.reward])[order],
        )
        self.clock.lap("verify")
        if plan.further and self.add is not None:
            self._append(*self.add(plan.further, self.ids))
            grown = len(self.ids) - len(self.trials)
            self.trials = np.pad(self.trials, (0, grown))
            self.successes = np.pad(self.successes, (0, grown))
            self.reward = np.pad(self.reward, (0, grown))
        return Outcomes(self.trials, self.successes, {"reward": self.reward})

    def table(
        self, loss: LabelLoss, responses: LabelResponses, advantage: Tensor, weight: Tensor
    ) -> tuple[Tensor, float, bool]:
        """(b, C) weights and denominator for :func:`class_loss`, and whether any rank has a signal.

        ``advantage`` and ``weight`` are (R,), of the responses that are learned from.
        """
        parts = self.ranks.gather((len(responses.row), has_signal(advantage, weight)))
        samples = LabelSamples(
            truth=torch.from_numpy(self.truth), classes=self.log_probs.shape[1],
            row=torch.from_numpy(responses.image), label=torch.from_numpy(responses.label),
            weighted=advantage * weight, candidates=len(self.ids),
            responses=sum(count for count, _ in parts),
        )  # fmt: skip
        signal = loss.acts_without_advantage or any(acts for _, acts in parts)
        return *loss.over_labels(samples), signal

    def responses(self) -> LabelResponses:
        """This rank's labels of all rounds, by image."""
        row = self.here[self.sampled.row]
        return LabelResponses(
            row, self.ids[row], *self.judged, self.sampled.row, self.sampled.label
        )
