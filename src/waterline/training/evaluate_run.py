"""Evaluating the checkpoints of a finished run."""

from __future__ import annotations

import logging
from pathlib import Path

from waterline.evaluation import CountsStore, EvaluationSettings, ProbabilityStore, evaluate
from waterline.rollouts.ranks import Ranks
from waterline.runs import RunFolder, as_bad_input, build
from waterline.tasks.images import ImageTask
from waterline.training.assemble import build_policy, build_task, device_of, set_threads
from waterline.training.checkpoints import Checkpoints, load_checkpoint
from waterline.training.images.assemble import build_classifier, require_image_split
from waterline.training.images.evaluate import evaluate_images

log = logging.getLogger("waterline")


def evaluate_run(
    root: str | Path,
    *,
    checkpoint: str | int = "final",
    split: str = "dev",
    n: int = 256,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    max_rows: int = 8192,
    threads: int | None = None,
) -> CountsStore | ProbabilityStore:
    """One checkpoint of the run in ``root``, into ``eval/counts.parquet``.

    A base run's policy counts as step 0, where reinforcement learning begins. What was evaluated
    with the same ``n`` is not sampled again. On images, whose success probability is known, nothing
    is sampled: it goes into ``eval/probabilities.parquet``, and ``n`` and the settings of sampling
    are not read. Runs that were trained on GPUs are evaluated on one, where there is one.

    Raises:
        BadInput: The folder holds no run, or the run no such checkpoint.
    """
    folder = RunFolder(root)
    config = folder.read_config()
    path = Checkpoints(folder.checkpoints).require(checkpoint)
    set_threads(threads)
    with as_bad_input():
        settings = EvaluationSettings(
            n=n, temperature=temperature, top_p=top_p, top_k=top_k, max_rows=max_rows,
            seed=config["seed"],
        )  # fmt: skip
        task = build_task(config)
    step = 0 if config["method"] == "base" else int(load_checkpoint(path)["done"])
    device = device_of(config)
    if isinstance(task, ImageTask):
        require_image_split(task, split)
        exact = ProbabilityStore(folder.eval / "probabilities.parquet")
        policy = build_classifier(config, path).to(device)
        with folder:
            if exact.at(step, split).empty:
                workers = config["trainer"]["workers"]
                evaluate_images(policy, task, split, step, exact, Ranks(), workers)
        return exact
    engine = build(config["engine"], policy=build_policy(config, path).to(device))
    store = CountsStore(folder.eval / "counts.parquet")
    with folder, as_bad_input():
        evaluate(
            engine, task, split, step, settings, store,
            progress=lambda done, of: log.info("%s: %d of %d prompts", split, done, of),
        )  # fmt: skip
    return store
