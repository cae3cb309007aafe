"""Evaluating a classifier by the exact probability of each image's own label."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from waterline.evaluation.pass_at_k import exact_pass_at_k
from waterline.evaluation.stores import ProbabilityStore
from waterline.evaluation.subject import Progress, Subject, require_split, unseen
from waterline.runs import BadInput
from waterline.runs.settings import Whole, check_fields
from waterline.tasks.images import FixedBatches, Unreadable, loader, mislabelled

log = logging.getLogger("waterline")

# Images in one forward pass of an evaluation, as in the papers' code.
_CHUNK = 1000


@dataclass(frozen=True, kw_only=True)
class ExactEvaluation:
    """The success probability of every image into ``probabilities.parquet``, and exact Pass@K.

    Args:
        ks: the K of the metrics.
    """

    responses: ClassVar[str] = "labels"

    ks: Sequence[Whole] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    def store(self, folder: str | Path) -> ProbabilityStore:
        """``probabilities.parquet`` below a run's folder ``eval``."""
        return ProbabilityStore(Path(folder) / "probabilities.parquet")

    @torch.no_grad()
    def measure(
        self, subject: Subject, split: str, step: int, folder: str | Path,
        progress: Progress = unseen,
    ) -> None:  # fmt: skip
        """See :class:`Evaluation`. Nothing is sampled; images that cannot be read are left out.

        BatchNorm uses its running statistics, those of rank 0 on all ranks.

        Raises:
            BadInput: None of the images can be read, or one has a label that is no class.
        """
        require_split(subject.task, split)
        store, policy, ranks = self.store(folder), subject.policy, subject.ranks
        if not ranks.gather(store.at(step, split).empty)[0]:
            return
        if ranks.rank == 0:
            store.require_writable()
        images = subject.task.splits[split]
        device = next(policy.parameters()).device
        ranks.share(policy.buffers())
        training = policy.training
        policy.eval()
        batches = FixedBatches(images, ranks.mine(len(images)), _CHUNK)
        ids: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        p, top1 = [np.empty(0)], [np.empty(0, dtype=np.bool_)]
        unreadable: list[Unreadable] = []
        wrong: list[str] = []
        for chunk in loader(batches, range(len(batches)), subject.workers):
            unreadable += chunk.unreadable
            wrong += mislabelled(chunk, subject.task.classes)
            if len(chunk.ids) and not wrong:
                labels = torch.from_numpy(chunk.labels)
                logits = policy(chunk.pixels.to(device)).double().cpu()
                own = logits.log_softmax(dim=1).gather(1, labels[:, None])[:, 0].exp()
                ids.append(chunk.ids)
                p.append(own.numpy())
                top1.append((logits.argmax(dim=1) == labels).numpy())
            progress(sum(map(len, ids)), len(batches.split))
        policy.train(training)
        parts = ranks.gather((np.concatenate(ids), np.concatenate(p), np.concatenate(top1)))
        if sentences := [sentence for part in ranks.gather(wrong) for sentence in part]:
            raise BadInput(sentences[0])
        lost = [image for part in ranks.gather(unreadable) for image in part]
        if len(lost) == len(images):
            raise BadInput(
                f"None of the {len(images)} images of the split {split!r} can be read, the first "
                f"{lost[0].name} ({lost[0].reason}): check the data."
            )
        if lost and ranks.rank == 0:
            log.warning(
                "%d of %d images of %s cannot be read and are left out, the first %s: %s",
                len(lost), len(images), split, lost[0].name, lost[0].reason,
            )  # fmt: skip
        if ranks.rank == 0:
            store.write(step, split, *(np.concatenate(part) for part in zip(*parts, strict=True)))

    def metrics(self, folder: str | Path, split: str, step: int) -> dict[str, float]:
        """Exact ``eval/pass@K``, the mean over the images of the split, and ``eval/top1``."""
        rows = self.store(folder).at(step, split)
        p = rows["p"].to_numpy()
        passed = {f"eval/pass@{k}": float(exact_pass_at_k(p, k).mean()) for k in self.ks}
        return passed | {"eval/top1": float(rows["top1"].mean())}
