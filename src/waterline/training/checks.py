"""Whether the pieces of a configuration fit each other, found before a task is built."""

import inspect
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, get_type_hints

import numpy as np
import torch
from transformers import AutoTokenizer

from waterline.allocation import Request
from waterline.evaluation import require_split
from waterline.rollouts.ranks import has_launcher
from waterline.runs import BadInput, as_bad_input, build
from waterline.runs.settings import check_settings
from waterline.runs.targets import TARGET, is_piece, locate

Config = Mapping[str, Any]
_FIT = ("task", "success", "allocation", "policy", "engine", "rewards", "losses", "evaluation",
        "training")  # fmt: skip


def check_fit(config: Config) -> None:
    """Compares what the classes of the pieces say of themselves.

    Raises:
        BadInput: Two of them do not go together.
    """
    if not all(is_piece(config.get(name)) for name in _FIT):
        return  # found by the check of types, which says what is wrong
    target = {name: _made_by(locate(str(config[name][TARGET]))) for name in _FIT}
    exact = any(getattr(target[name], "needs_likelihood", False) for name in ("losses", "success"))
    if exact and not getattr(target["task"], "has_likelihood", True):
        raise BadInput(
            "method=ce and success=oracle need a likelihood, which this task does not have: choose "
            "another method, or an experiment on images."
        )
    reads = [getattr(target["losses"], "reads_responses", True)]
    reads.append(getattr(target["allocation"], "reads_budget", True))
    if reads[0] != reads[1]:
        raise BadInput(
            "losses=cross_entropy samples nothing and allocation=none belongs to it alone: choose "
            "method=ce, or leave losses and allocation to another method."
        )
    wanted = getattr(target["training"], "responses", None)
    for group in ("policy", "engine", "rewards", "evaluation"):
        # A piece that names no kind is for all of them.
        kind = getattr(target[group], "responses", None)
        if kind and wanted and kind != wanted:
            raise BadInput(
                f"The piece chosen for {group} is for {kind}, and training is for {wanted}: leave "
                "both groups to the experiment."
            )
    given, judged = (getattr(target[name], "answers", None) for name in ("task", "rewards"))
    if given and judged and given != judged:
        raise BadInput(
            f"The verifier chosen for rewards judges by {judged} answers, and the task has {given} "
            f"answers: leave rewards to the experiment, or choose rewards={given}."
        )


def check_pieces(config: Config) -> None:
    """Builds the pieces that cost nothing, and lets them say what is wrong with their settings.

    Raises:
        BadInput: A piece refuses a value, a budget cannot be met, or groups are too small.
    """
    found: dict[str, Any] = {}
    for name in ("success", "allocation", "advantages", "losses", "evaluation", "logger"):
        with as_bad_input(name):
            found[name] = build(config[name])
    if (own := config["final"]["rewards"]) is not None:
        check_settings({**config["rewards"], **own}, {}, "final.rewards")
    ks, most = (getattr(found["evaluation"], name, None) for name in ("ks", "n"))
    if ks and most and min(ks) > most:
        raise BadInput(
            f"evaluation.ks={list(ks)}: Pass@{min(ks)} needs more than evaluation.n={most} "
            "responses; raise n, or lower a K."
        )
    for name in ("training", "supervised"):
        stage = config[name] or {}
        for key in [key for key in ("optimizer", "update") if key in stage]:
            with as_bad_input(f"{name}.{key}"):
                build(stage[key])
    if found["allocation"].reads_budget:
        _check_rollouts(config, found)
    advantage, verifier = found["advantages"], locate(str(config["rewards"][TARGET]))
    if getattr(verifier, "fractional", False) and isinstance(advantage, partial):
        with as_bad_input("advantages"):  # one that is defined for 0 and 1 alone says so
            advantage(torch.tensor([0.5, 0.0]), torch.zeros(2, dtype=torch.int64))


def _check_rollouts(config: Config, found: Mapping[str, Any]) -> None:
    """A budget that cannot be met, and groups too small for the advantage."""
    batch, n0 = config["training"]["batch"], config["allocation"]["n0"]
    # A budget is met or not whatever the batch, whose size is checked against the task.
    ids = np.arange(min(batch, 4096))
    trials, successes = found["success"].past(ids) or (None, None)
    request = Request(
        p=np.full(len(ids), 0.5), known=np.ones(len(ids), dtype=bool), n0=n0, ids=ids,
        past_trials=trials, past_successes=successes,
    )  # fmt: skip
    with as_bad_input("allocation"):
        found["allocation"].start(request)
    advantage = found["advantages"]
    if not isinstance(advantage, partial):
        return
    k = config["advantages"].get("k", 0)
    if k > n0:
        raise BadInput(
            f"advantages.k={k} is above allocation.n0={n0}, so that no group has a signal: lower "
            f"advantages.k to at most {n0}, or raise allocation.n0."
        )
    with as_bad_input("advantages"):
        one = torch.nn.functional.one_hot(torch.tensor(0), min(n0, 4096)).double()
        signal = advantage(one, torch.zeros(len(one), dtype=torch.int64)).any()
    if not signal:
        raise BadInput(
            f"allocation.n0={n0}: a group baseline needs at least 2 rollouts per prompt."
        )


def check_final(config: Config, task: Any) -> None:
    """Finds what of ``final`` would fail after the training.

    Raises:
        BadInput: Its split is empty, or its comparison of gradients cannot be made.
    """
    final, steps = config["final"], config["training"]["steps"]
    if final["split"] is not None:
        require_split(task, final["split"])
    if not final["gradients"]["n0"]:
        return
    if not task.has_likelihood:
        raise BadInput(
            "final.gradients.n0 asks to compare gradients with that of the likelihood, which this "
            "task does not have: set it to null."
        )
    every = config["evaluation"]["every"]
    for step in final["gradients"]["checkpoints"] or ():
        if step != steps and (step > steps or not every or step % every):
            raise BadInput(
                f"final.gradients.checkpoints: the weights of step {step} will not be kept, but "
                f"those of evaluated steps (evaluation.every={every}) and of the last ({steps}): "
                "choose among them."
            )


def check_tokenizer(config: Config, task: Any, policy: Any) -> None:
    """Raises BadInput where the policy was not made for the tokenizer of the task."""
    tokenizer = getattr(task, "tokenizer", None)
    vocabulary: dict[str, int] = getattr(tokenizer, "get_vocab", dict)()
    size = getattr(getattr(getattr(policy, "model", None), "config", None), "vocab_size", None)
    if size is not None and max(vocabulary.values(), default=-1) >= size:
        raise BadInput(
            f"The tokenizer of the task has {max(vocabulary.values()) + 1} tokens and the policy "
            f"{size}: choose a policy and a tokenizer that belong together."
        )
    model = config["policy"].get("model") or {}
    name, other = model.get("name"), getattr(tokenizer, "name_or_path", None)
    if not isinstance(name, str) or not other or other == name:
        return
    try:
        own = AutoTokenizer.from_pretrained(name, revision=model.get("revision") or "main")
    except Exception:  # of many types: a policy may come without a tokenizer
        return
    if own.get_vocab() != vocabulary:
        raise BadInput(
            f"The tokenizer {other} of the task is not that of the base {name}: set "
            "task.tokenizer to the base's own."
        )


def check_device(trainer: Config) -> None:
    """Raises BadInput where this machine does not have the devices that a run asks for."""
    gpus = torch.cuda.device_count()
    there = {"gpu": gpus, "cuda": gpus, "mps": int(torch.backends.mps.is_available())}
    # Some more processes than cores are slow but run; hundreds would stop the whole machine.
    count = there.get(trainer["accelerator"], max(8 * (os.cpu_count() or 1), gpus))
    if count == 0:
        raise BadInput(
            "trainer.accelerator asks for a GPU and none is found: take trainer=cpu with "
            "trainer.devices=1, or run where there is one."
        )
    if trainer["devices"] > count:
        raise BadInput(
            f"trainer.devices={trainer['devices']} is above the {count} that this machine can run: "
            "lower it, or run where there are as many."
        )
    if trainer["num_nodes"] > 1 and not has_launcher():
        raise BadInput(
            f"trainer.num_nodes={trainer['num_nodes']}: nothing has started the processes of the "
            "other nodes: start the command by srun or torchrun on each, or leave it at 1."
        )


def _made_by(target: Any) -> Any:
    """The class of what a target gives; the target itself where it does not say."""
    if inspect.isclass(target):
        return target
    try:
        return get_type_hints(target).get("return", target)
    except NameError:  # imported for type checkers alone
        return target
