"""From a resolved configuration to the objects of a run, checked before anything is trained."""

import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from waterline.advantages import PerResponse, TokenAdvantage
from waterline.allocation import Request
from waterline.evaluation import Evaluation, require_split
from waterline.runs import BadInput, as_bad_input, build, refuse_unread
from waterline.runs.checks import require_whole
from waterline.runs.targets import locate
from waterline.training.checkpoints import EVALUATE, load_weights
from waterline.training.checks import check_group_size, check_numbers
from waterline.training.reinforcement import ReinforcementStage
from waterline.training.stage import Stage
from waterline.training.step import Pieces

Config = Mapping[str, Any]

# Settings that every method takes, whether its allocator reads them or not.
SHARED = ("n0", "n_min", "n_max", "u0")
# What is read besides the pieces: by the run, and by Lightning.
_BY_THE_RUN = ("checkpoint_every", "log_every")
# Of Lightning's settings those that do not change what a run is: it has no limits of its own.
_TRAINER = (
    "accelerator", "devices", "num_nodes", "enable_progress_bar", "deterministic", "threads",
    "workers",
)  # fmt: skip


def check_config(config: Config) -> None:
    """Finds numbers out of range and settings that nothing reads.

    Raises:
        BadInput: There is one.
    """
    check_numbers(config)
    sections = (
        "stage", "seed", "method", "experiment", "task", "success", "allocation", "policy",
        "engine", "rewards", "advantages", "losses", "evaluation", "training", "supervised",
        "trainer", "logger", "base", "paths", "final",
    )  # fmt: skip
    refuse_unread(
        config,
        {
            "": sections,
            "allocation": SHARED,
            "training": _BY_THE_RUN,
            "supervised": _BY_THE_RUN,
            "evaluation": ("split", "every"),
            "trainer": _TRAINER,
            "base": ("path", "train_if_missing"),
            "paths": ("results",),
            "final": ("split", "n", "gradients"),
            "final.gradients": ("n0", "checkpoints"),
        },
    )


def build_task(config: Config) -> Any:
    """The task with its prompts."""
    with as_bad_input():
        return build(config["task"])


def build_policy(config: Config, weights: str | Path | None = None) -> Any:
    """The policy's network, with the weights of a run's checkpoint when one is named."""
    with as_bad_input():
        piece = build(config["policy"])
        # A function comes as a call that is still to be made; an instance of a class as it is.
        policy = piece() if isinstance(piece, partial) else piece
    if weights is not None:
        load_weights(policy, weights, EVALUATE)
    return policy


def build_pieces(config: Config, task: Any, policy: Any) -> Pieces:
    """What the method and the task put into the rooms.

    Raises:
        BadInput: A piece cannot be built, or pieces do not fit each other.
    """
    loss, allocator = build(config["losses"]), build(config["allocation"])
    success = build(config["success"])
    exact = [piece for piece in (loss, success) if getattr(piece, "needs_likelihood", False)]
    if exact and not task.has_likelihood:
        raise BadInput(
            "method=ce and success=oracle need a likelihood, which this task does not have: choose "
            "another method, or an experiment on images."
        )
    if loss.reads_responses != allocator.reads_budget:
        raise BadInput(
            "losses=cross_entropy samples nothing and allocation=none belongs to it alone: choose "
            "method=ce, or leave losses and allocation to another method."
        )
    if allocator.reads_budget:
        _check_rollouts(config, success)
    advantage, verifier = build(config["advantages"]), build(config["rewards"])
    if getattr(verifier, "fractional", False) and isinstance(advantage, partial):
        with as_bad_input():  # an advantage that is defined for 0 and 1 alone says so
            advantage(torch.tensor([0.5, 0.0]), torch.zeros(2, dtype=torch.int64))
    return Pieces(
        success=success,
        allocator=allocator,
        engine=build(config["engine"], policy=policy),
        verifier=verifier,
        advantage=token_level(advantage),
        loss=loss,
        n0=config["allocation"]["n0"],
    )


def token_level(advantage: Any) -> TokenAdvantage:
    """An advantage as the step calls it; a function of rewards and groups is adapted."""
    return advantage if hasattr(advantage, "reads") else PerResponse(advantage)


def build_evaluation(config: Config, **settings: Any) -> Evaluation:
    """How the run is evaluated; ``settings`` go before those of the configuration."""
    with as_bad_input():
        evaluation: Evaluation = build({**config["evaluation"], **settings})
    return evaluation


def _check_rollouts(config: Config, success: Any) -> None:
    """A budget that cannot be met, and groups too small for the advantage, are found now."""
    batch, n0 = config["training"]["batch"], config["allocation"]["n0"]
    ids = np.arange(batch)
    trials, successes = success.past(ids) or (None, None)
    request = Request(
        p=np.full(batch, 0.5), known=np.ones(batch, dtype=bool), n0=n0, ids=ids,
        past_trials=trials, past_successes=successes,
    )  # fmt: skip
    with as_bad_input():
        build(config["allocation"]).start(request)  # another one, for it may remember
        check_group_size(config["advantages"], n0)


def assemble(config: Config, task: Any) -> tuple[ReinforcementStage, Evaluation]:
    """The run's stage with random weights, and the evaluation along its way, all checked.

    Raises:
        BadInput: Something in the configuration is wrong or does not fit.
    """
    policy = build_policy(config)
    stage_type: Any = locate(str(config["training"]["_target_"]))
    chosen = {"policies": policy}
    chosen |= {
        name: locate(str(config[name]["_target_"])) for name in ("engine", "rewards", "evaluation")
    }
    for group, piece in chosen.items():
        # A verifier or an evaluation that names no kind is for all of them.
        kind = getattr(piece, "responses", None)
        if kind != stage_type.responses and (kind or group in ("policies", "engine")):
            raise BadInput(
                f"The piece chosen for {group} is for {kind or 'another kind of responses'}, and "
                f"training is for {stage_type.responses}: leave both groups to the experiment."
            )
    pieces = build_pieces(config, task, policy)
    evaluation = build_evaluation(config)
    for split in ("train", config["evaluation"]["split"]):
        require_split(task, split)
    build(config["logger"])
    with as_bad_input():
        stage = build(
            config["training"], policy=policy, task=task, pieces=pieces, seed=config["seed"],
            workers=config["trainer"]["workers"],
        )  # fmt: skip
    return stage, evaluation


def build_supervised(config: Config, task: Any) -> Stage:
    """The supervised start from random weights.

    Raises:
        BadInput: The task has no demonstrations, or a setting is out of range.
    """
    if config["supervised"] is None:
        raise BadInput(
            "This experiment has no supervised start: leave stage=base out where training starts "
            "from random weights, else name a base policy with base.path=."
        )
    with as_bad_input():
        stage: Stage = build(
            config["supervised"], policy=build_policy(config), task=task, seed=config["seed"]
        )
    return stage


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
        require_whole("threads", threads, 1)
        torch.set_num_threads(threads)


def device_of(config: Config) -> str:
    """Where a run's checkpoints are read: on a GPU if it was trained on one and there is one."""
    wants_gpu = config["trainer"]["accelerator"] not in ("cpu", "mps")
    return "cuda" if wants_gpu and torch.cuda.is_available() else "cpu"
