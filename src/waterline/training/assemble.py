"""From a resolved configuration to the objects of a run."""

from __future__ import annotations

import random
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch

from waterline.allocation import NoRollouts, Request
from waterline.evaluation import EvaluationSettings
from waterline.evaluation.evaluator import require_split
from waterline.losses import CrossEntropy
from waterline.policies import SharedPrefixLM
from waterline.rollouts import LabelSampler, SamplingParams
from waterline.runs import BadInput, as_bad_input, build
from waterline.runs.targets import locate
from waterline.success import Oracle
from waterline.tasks.images import ImageTask
from waterline.tasks.task import Task, require_whole_batches
from waterline.training.checkpoints import load_weights
from waterline.training.checks import check_budget, check_group_size, check_numbers
from waterline.training.ranks import Ranks
from waterline.training.reinforcement import ReinforcementStage, UpdateSettings
from waterline.training.stage import OptimizerSettings, check_steps
from waterline.training.step import Pieces
from waterline.training.supervised import DemonstratedTask, SupervisedStage

Config = Mapping[str, Any]


def build_task(config: Config) -> Task | ImageTask:
    """The task with its prompts."""
    with as_bad_input():
        task: Task | ImageTask = build(config["task"])
    return task


def build_policy(config: Config, weights: str | Path | None = None) -> SharedPrefixLM:
    """The policy's network, with the weights of a checkpoint when one is named."""
    model = build(config["policy"]["model"])()
    with as_bad_input():
        policy = SharedPrefixLM(model, config["policy"]["precision"])
    if config["policy"]["gradient_checkpointing"]:
        policy.model.gradient_checkpointing_enable({"use_reentrant": False})
    if weights is not None:
        load_weights(policy, weights)
    return policy


def build_supervised(config: Config, task: Task | ImageTask) -> SupervisedStage:
    """The supervised start from random weights.

    Raises:
        BadInput: The task has no demonstrations, or a setting is out of range.
    """
    if not isinstance(task, DemonstratedTask):
        raise BadInput(
            f"{type(task).__name__} has no demonstrations to start from: leave stage=base out "
            "where training starts from random weights, else name a base policy with base.path=."
        )
    settings = config["supervised"]
    prompts = list(task.splits["sft"])
    targets = [task.target(p) for p in prompts]
    with as_bad_input():
        optimizer = OptimizerSettings(**settings["optimizer"])
        return SupervisedStage(
            build_policy(config), prompts, targets, optimizer=optimizer,
            batch=settings["batch"], steps=settings["steps"], seed=config["seed"],
        )  # fmt: skip


def check_settings(config: Config, task: Task) -> None:
    """Finds what cannot work before anything is trained, the base policy included.

    Raises:
        BadInput: A piece or setting of reinforcement learning or its evaluation is wrong.
    """
    check_numbers(config)
    settings, n0 = config["training"], config["allocation"]["n0"]
    exact = (CrossEntropy, NoRollouts, Oracle)
    if any(isinstance(build(config[r]), exact) for r in ("losses", "allocation", "success")):
        raise BadInput(
            "method=ce and success=oracle need a likelihood, which this task does not have: choose "
            "another method, or an experiment on images."
        )
    if "update" not in settings or locate(config["engine"]["_target_"]) is LabelSampler:
        raise BadInput(
            "training=images and engine=labels are for images: leave both groups to the experiment."
        )
    with as_bad_input():
        for room in ("success", "advantages", "losses", "logger"):
            build(config[room])
        OptimizerSettings(**settings["optimizer"])
        UpdateSettings(**settings["update"])
        check_steps(settings["steps"])
        evaluation_settings(config)
        require_whole_batches(len(task.splits["train"]), settings["batch"])
        require_split(task, config["evaluation"]["split"])
        SamplingParams(key=0, max_tokens=1, temperature=settings["temperature"])
        allocator = build(config["allocation"])
        check_budget(allocator, settings["batch"], n0)
        half = np.full(settings["batch"], 0.5)
        allocator.start(Request(p=half, known=np.ones(len(half), dtype=bool), n0=n0))
        check_group_size(config["advantages"], n0)


def evaluation_settings(config: Config) -> EvaluationSettings:
    """How the run is evaluated along its way."""
    node = config["evaluation"]
    read = {key: node[key] for key in ("n", "temperature", "top_p", "top_k", "max_rows")}
    return EvaluationSettings(**read, seed=config["seed"])


def build_reinforcement(config: Config, task: Task, base: Path) -> ReinforcementStage:
    """Reinforcement learning of the policy in the checkpoint ``base``.

    Raises:
        BadInput: A piece cannot be built, or pieces do not fit each other.
    """
    settings = config["training"]
    policy = build_policy(config, base)
    loss = build(config["losses"])
    reference = None
    if loss.needs_reference:
        reference = deepcopy(policy).requires_grad_(False).eval()
    with as_bad_input():
        pieces = Pieces(
            task=task,
            success=build(config["success"]),
            allocator=build(config["allocation"]),
            engine=build(config["engine"], policy=policy),
            advantage=build(config["advantages"]),
            n0=config["allocation"]["n0"],
            ranks=Ranks(),
        )
        return ReinforcementStage(
            policy,
            pieces,
            loss,
            optimizer=OptimizerSettings(**settings["optimizer"]),
            update=UpdateSettings(
                **settings["update"], step_on_no_signal=settings["step_on_no_signal"]
            ),
            batch=settings["batch"],
            steps=settings["steps"],
            seed=config["seed"],
            temperature=settings["temperature"],
            reference=reference,
        )


def seed_generators(seed: int) -> None:
    """The global generators, for pieces such as dropout that draw from them."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def set_threads(threads: int | None) -> None:
    """Threads of one process; None leaves torch's own choice.

    Raises:
        BadInput: No whole number of at least 1.
    """
    if threads is not None:
        if not isinstance(threads, int) or threads < 1:
            raise BadInput(f"threads={threads}: must be a whole number of at least 1, or null.")
        torch.set_num_threads(threads)


def device_of(config: Config) -> str:
    """Where a run's checkpoints are read: on a GPU if it was trained on one and there is one."""
    wants_gpu = config["trainer"]["accelerator"] not in ("cpu", "mps")
    return "cuda" if wants_gpu and torch.cuda.is_available() else "cpu"
