"""Exact Pass@K of a classifier."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from waterline.evaluation import ProbabilityStore, exact_pass_at_k
from waterline.policies import ImageClassifier
from waterline.rollouts.ranks import Ranks
from waterline.runs import BadInput
from waterline.tasks.images import ImageTask, Unreadable
from waterline.training.images.batches import FixedBatches, loader, mislabelled

log = logging.getLogger("waterline")

# Images in one forward pass of an evaluation, as in the papers' code.
_CHUNK = 1000


@torch.no_grad()
def evaluate_images(
    policy: ImageClassifier,
    task: ImageTask,
    split: str,
    step: int,
    store: ProbabilityStore,
    ranks: Ranks,
    workers: int = 0,
) -> None:
    """Writes the exact success probability of every readable image of ``split``, on rank 0.

    BatchNorm uses its running statistics, those of rank 0 on all ranks. Images that cannot be read
    are told in one line of the log.

    Raises:
        BadInput: None of them can be read, or one has a label that is no class.
    """
    images = task.splits[split]
    device = next(policy.parameters()).device
    ranks.share(policy.buffers())
    training = policy.training
    policy.eval()
    rows = ranks.mine(len(images))
    batches = FixedBatches(images, rows, _CHUNK)
    ids: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    p, top1 = [np.empty(0)], [np.empty(0, dtype=np.bool_)]
    unreadable: list[Unreadable] = []
    wrong: list[str] = []
    for chunk in loader(batches, range(len(batches)), workers):
        unreadable += chunk.unreadable
        wrong += mislabelled(chunk, task.classes)
        if len(chunk.ids) and not wrong:
            labels = torch.from_numpy(chunk.labels)
            logits = policy(chunk.pixels.to(device)).double().cpu()
            own = logits.log_softmax(dim=1).gather(1, labels[:, None])[:, 0].exp()
            ids.append(chunk.ids)
            p.append(own.numpy())
            top1.append((logits.argmax(dim=1) == labels).numpy())
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


def probability_metrics(
    store: ProbabilityStore, step: int, split: str, ks: Sequence[int]
) -> dict[str, float]:
    """``eval/pass@K`` and ``eval/top1`` of one checkpoint on one split."""
    rows = store.at(step, split)
    p = rows["p"].to_numpy()
    passed = {f"eval/pass@{k}": float(exact_pass_at_k(p, k).mean()) for k in ks}
    return passed | {"eval/top1": float(rows["top1"].mean())}
