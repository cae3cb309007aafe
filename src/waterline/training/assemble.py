"""From a resolved configuration to the objects of a run, checked before anything is trained."""

import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from waterline.advantages import PerResponse, TokenAdvantage
from waterline.evaluation import Evaluation, require_split
from waterline.runs import BadInput, as_bad_input, build
from waterline.runs.settings import check_settings
from waterline.runs.targets import TARGET, is_piece, locate
from waterline.training.checkpoints import EVALUATE, load_weights
from waterline.training.checks import check_final, check_fit, check_pieces, check_tokenizer
from waterline.training.reinforcement import ReinforcementStage
from waterline.training.settings import HANDED_IN, SECTIONS
from waterline.training.step import Pieces
from waterline.training.supervised import SupervisedStage

Config = Mapping[str, Any]


def check_config(config: Config) -> None:
    """Finds what can be found before a task or a network is built, and before a folder is made.

    Raises:
        BadInput: Pieces that do not fit each other, a setting that nothing reads, or a value of a
            wrong type or out of range.
    """
    check_fit(config)
    check_settings(config, SECTIONS, handed_in=HANDED_IN)
    check_pieces(config)


def build_task(config: Config) -> Any:
    """The task with its prompts."""
    with as_bad_input():
        task = build(config["task"])
    # Where answers come from files, one that cannot be read is found before anything is sampled.
    check = getattr(locate(str(config["rewards"][TARGET])), "check_answer", None)
    if check is not None and hasattr(task, "source_of"):
        for prompts in task.splits.values():
            for prompt in prompts:
                try:
                    check(prompt.answer)
                except ValueError as error:
                    raise BadInput(
                        f"{task.source_of(prompt.id)}: {error}; correct the row or remove it."
                    ) from error
    return task


def build_policy(config: Config, weights: str | Path | None = None) -> Any:
    """The policy's network, with the weights of a run's checkpoint when one is named."""
    try:
        with as_bad_input():
            piece = build(config["policy"])
            # A function comes as a call that is still to be made; an instance of a class as it is.
            policy = piece() if isinstance(piece, partial) else piece
    except (MemoryError, OverflowError, RuntimeError) as error:
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise BadInput(f"policy: the network cannot be made ({why}): lower its sizes.") from error
    if weights is not None:
        load_weights(policy, weights, EVALUATE)
    return policy


def is_pretrained(config: Config) -> bool:
    """Whether the policy comes with weights to start from, and nothing is to be trained before."""
    model = config["policy"].get("model")
    has_weights = is_piece(model) and getattr(locate(model[TARGET]), "has_weights", False)
    return config["supervised"] is None and bool(has_weights)


def build_pieces(config: Config, policy: Any) -> Pieces:
    """What the method and the task put into the rooms.

    Raises:
        BadInput: A piece cannot be built, or pieces do not fit each other.
    """
    check_fit(config)
    check_pieces(config)
    return Pieces(
        success=build(config["success"]),
        allocator=build(config["allocation"]),
        engine=build(config["engine"], policy=policy),
        verifier=build(config["rewards"]),
        advantage=token_level(build(config["advantages"])),
        loss=build(config["losses"]),
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


def assemble(config: Config, task: Any) -> tuple[ReinforcementStage, Evaluation]:
    """The run's stage with random weights, and the evaluation along its way, all checked.

    Raises:
        BadInput: Something in the configuration is wrong or does not fit.
    """
    for split in ("train", config["evaluation"]["split"]):
        require_split(task, split)
    check_final(config, task)
    policy = build_policy(config)
    check_tokenizer(config, task, policy)
    pieces = build_pieces(config, policy)
    evaluation = build_evaluation(config)
    build(config["logger"])
    with as_bad_input():
        stage = build(
            config["training"], policy=policy, task=task, pieces=pieces, seed=config["seed"],
            workers=config["trainer"]["workers"],
        )  # fmt: skip
    return stage, evaluation


def build_supervised(config: Config, task: Any) -> SupervisedStage:
    """The supervised start from random weights.

    Raises:
        BadInput: The task has no demonstrations, or a setting is out of range.
    """
    if config["supervised"] is None:
        raise BadInput(
            "This experiment has no supervised start: leave stage=base out where training starts "
            "from random weights, else name a base policy with base.path= or policies=pretrained."
        )
    policy = build_policy(config)
    with as_bad_input():
        stage: SupervisedStage = build(
            config["supervised"], policy=policy, task=task, seed=config["seed"],
            engine=build(config["engine"], policy=policy), verifier=build(config["rewards"]),
        )  # fmt: skip
    if stage.until is not None:
        require_split(task, stage.until.split)
    return stage


def seed_generators(seed: int) -> None:
    """The global generators, for pieces such as dropout that draw from them."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def set_threads(threads: int | None) -> None:
    """Threads of one process; None leaves torch's own choice."""
    if threads is not None:
        torch.set_num_threads(threads)


def device_of(config: Config) -> str:
    """Where a run's checkpoints are read: on a GPU if it was trained on one and there is one."""
    wants_gpu = config["trainer"]["accelerator"] not in ("cpu", "mps")
    return "cuda" if wants_gpu and torch.cuda.is_available() else "cpu"
