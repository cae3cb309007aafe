"""From a resolved configuration to a run on images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from waterline.allocation import NoRollouts, Request
from waterline.losses import CrossEntropy
from waterline.policies import ImageClassifier
from waterline.rollouts import LabelSampler
from waterline.runs import BadInput, as_bad_input, build
from waterline.tasks.images import ImageTask
from waterline.training.checkpoints import load_weights
from waterline.training.checks import check_budget, check_group_size, check_numbers
from waterline.training.images.stage import ImageStage
from waterline.training.images.step import ImagePieces
from waterline.training.ranks import Ranks
from waterline.training.stage import OptimizerSettings

Config = Mapping[str, Any]
_TRIED = 8  # images, of which one can be read as a rule


def build_classifier(config: Config, weights: str | Path | None = None) -> ImageClassifier:
    """The classifier's network, with the weights of a checkpoint when one is named.

    Raises:
        BadInput: The configuration's policy is no classifier, or the checkpoint is of another.
    """
    node = config["policy"]
    if "frozen_batch_norm" not in node:
        raise BadInput(
            "The policy of this configuration is no image classifier: choose "
            "policies@policy=small_resnet or resnet50."
        )
    if not isinstance(node["frozen_batch_norm"], bool):
        raise BadInput(
            f"policy.frozen_batch_norm={node['frozen_batch_norm']}: must be true or false."
        )
    with as_bad_input():
        policy = ImageClassifier(build(node["model"])(), node["frozen_batch_norm"])
    if weights is not None:
        load_weights(policy, weights)
    return policy


def build_pieces(config: Config) -> ImagePieces:
    """What the method puts into the rooms.

    Raises:
        BadInput: A piece cannot be built, or pieces do not fit each other.
    """
    check_numbers(config)
    engine = build(config["engine"])
    if "diagnostics_every" not in config["training"] or not isinstance(engine, LabelSampler):
        raise BadInput(
            "Images are trained with training=images and engine=labels: leave both groups to the "
            "experiment."
        )
    loss, allocator = build(config["losses"]), build(config["allocation"])
    exact, silent = isinstance(loss, CrossEntropy), isinstance(allocator, NoRollouts)
    if exact != silent:
        raise BadInput(
            "losses=cross_entropy samples nothing and allocation=none belongs to it alone: choose "
            "method=ce, or leave losses and allocation to another method."
        )
    if not exact and (loss.needs_reference or loss.needs_entropy or loss.needs_value):
        raise BadInput(
            "losses: an image run learns from the policy gradient alone: set kl_coef, entropy_coef "
            "and value_coef to 0."
        )
    batch, n0 = config["training"]["batch"], config["allocation"]["n0"]
    with as_bad_input():
        pieces = ImagePieces(
            success=build(config["success"]), allocator=allocator, engine=engine,
            advantage=build(config["advantages"]), loss=loss, n0=n0, ranks=Ranks(),
        )  # fmt: skip
        if not silent:
            check_budget(allocator, batch, n0)
            half = np.full(batch, 0.5)
            allocator.start(Request(p=half, known=np.ones(batch, dtype=bool), n0=n0))
            check_group_size(config["advantages"], n0)
    return pieces


def build_image_stage(config: Config, task: ImageTask) -> ImageStage:
    """The run from random weights, or from those of ``base.path``.

    Raises:
        BadInput: Something in the configuration is wrong or does not fit.
    """
    settings = config["training"]
    pieces = build_pieces(config)
    for split in ("train", config["evaluation"]["split"]):
        require_image_split(task, split)
    if settings["batch"] > len(task.splits["train"]):
        raise BadInput(
            f"training.batch={settings['batch']} is above the {len(task.splits['train'])} training "
            "images: lower it, or raise task.train."
        )
    policy = build_classifier(config, config["base"]["path"])
    require_fitting_network(policy, task)
    with as_bad_input():
        build(config["logger"])
        return ImageStage(
            policy,
            task,
            pieces,
            optimizer=OptimizerSettings(**settings["optimizer"]),
            batch=settings["batch"],
            steps=settings["steps"],
            seed=config["seed"],
            step_on_no_signal=settings["step_on_no_signal"],
            diagnostics_every=settings["diagnostics_every"],
            workers=config["trainer"]["workers"],
        )


def require_image_split(task: ImageTask, split: str) -> None:
    """Raise BadInput unless the task has images in this split."""
    if split not in task.splits or not len(task.splits[split]):
        filled = ", ".join(name for name, images in task.splits.items() if len(images))
        raise BadInput(
            f"The task has no images in the split {split!r}: choose among {filled}, or give it a "
            "size above 0."
        )


@torch.no_grad()
def require_fitting_network(policy: ImageClassifier, task: ImageTask) -> None:
    """Raise BadInput unless the network gives the task's images a logit for each class."""
    split = task.splits["train"]
    pixels = split.load(range(min(_TRIED, len(split))), None).pixels[:1]
    if not len(pixels):
        return  # none of the first can be read, which the run will tell
    policy.eval()
    try:
        logits = policy(pixels)
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise BadInput(
            f"The network of policy.model cannot read images of the shape {tuple(pixels.shape[1:])}"
            f" ({reason}): choose another policy, or mend its settings."
        ) from error
    finally:
        policy.train()
    if logits.shape != (1, task.classes):
        raise BadInput(
            f"The network of policy.model gives outputs of the shape {tuple(logits.shape[1:])} for "
            f"{task.classes} classes: leave policy.model.classes as it is, and set task.classes."
        )
