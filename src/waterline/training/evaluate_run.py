"""Evaluating the checkpoints of a finished run."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterline.evaluation import Subject
from waterline.rollouts import RankedEngine, Ranks
from waterline.runs import BadInput, RunFolder, as_bad_input, build
from waterline.runs.paths import opened
from waterline.runs.settings import check_settings
from waterline.training.assemble import (
    build_evaluation,
    build_policy,
    build_task,
    device_of,
    is_pretrained,
    set_threads,
)
from waterline.training.checkpoints import EVALUATE, Checkpoints, load_checkpoint
from waterline.training.inputs import inputs_of

if TYPE_CHECKING:
    from waterline.evaluation.stores import StepTable

log = logging.getLogger("waterline")


def evaluate_run(
    root: str | Path,
    *,
    checkpoint: str | int = "final",
    split: str = "dev",
    threads: int | None = None,
    ks: Sequence[int] | None = None,
    rewards: Mapping[str, Any] | None = None,
    **settings: Any,
) -> StepTable:
    """One checkpoint of the run in ``root``, into its folder ``eval``.

    A base run's policy counts as step 0, where reinforcement learning begins. What was evaluated
    with the same settings is not done again. Runs that were trained on GPUs are evaluated on one,
    where there is one. Where the process is one of a group, all of the group call this and share
    the work, and the first writes.

    Args:
        checkpoint: 'final', or a step whose weights were kept.
        ks: the K that are wanted, checked before anything is evaluated.
        rewards: settings of the verifier that differ from those of the training.
        settings: of the run's evaluation piece, such as ``n`` and ``temperature``; those that it
            does not have, such as ``n`` where the success probability is known, are not read.

    Raises:
        BadInput: The folder holds no run, the run no such checkpoint, or a K is above n.
    """
    folder, ranks = RunFolder(root), Ranks()
    config = opened(folder.read_config())
    loaded = config["method"] == "base" and is_pretrained(config)
    path = None if loaded else Checkpoints(folder.checkpoints).require(checkpoint)
    set_threads(threads)
    evaluation = build_evaluation(config, **settings)
    most = getattr(evaluation, "n", math.inf)
    if beyond := [k for k in ks or () if k > most]:
        raise BadInput(f"Pass@{beyond[0]} needs more than n={most} responses: raise n or lower ks.")
    policy = build_policy(config, path).to(device_of(config))
    step: Any = 0
    if path is not None and config["method"] != "base":
        step = load_checkpoint(path, EVALUATE).get("done")
    if not isinstance(step, int):
        raise BadInput(f"{path} does not say of which step it is: {EVALUATE}.")
    task = build_task(config)
    folder.check_inputs(inputs_of({}, task))
    engine = build(config["engine"], policy=policy)
    judged_by = {**config["rewards"], **(rewards or {})}
    check_settings(judged_by, {}, "rewards")
    if engine.responses == RankedEngine.responses:
        engine = RankedEngine(engine, ranks)
    subject = Subject(
        task=task, policy=policy, engine=engine, verifier=build(judged_by), ranks=ranks,
        seed=config["seed"], version=step, workers=config["trainer"]["workers"],
        rules=rewards or {},
    )  # fmt: skip
    with ExitStack() as stack:
        if ranks.rank == 0:
            stack.enter_context(folder)
        stack.enter_context(as_bad_input())
        stack.enter_context(closing(engine))
        evaluation.measure(
            subject, split, step, folder.eval,
            progress=lambda done, of: log.info("%s: %d of %d prompts", split, done, of),
        )  # fmt: skip
    ranks.wait()  # the others read what the first has written
    return evaluation.store(folder.eval)
