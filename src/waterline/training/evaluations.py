"""Evaluations along a run: they write into its folder and give the metrics of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from waterline.evaluation import ProbabilityStore, evaluate, pass_at_k
from waterline.runs import RunFolder
from waterline.tasks.task import Task
from waterline.training.assemble import evaluation_settings
from waterline.training.images.evaluate import evaluate_images, probability_metrics
from waterline.training.images.stage import ImageStage
from waterline.training.ranked_evaluation import RankedCounts, RankedSampler
from waterline.training.reinforcement import ReinforcementStage
from waterline.training.stage import Row, Stage

Config = Mapping[str, Any]
Evaluation = Callable[[Stage, int], Row]


def sampled_evaluation(config: Config, task: Task, folder: RunFolder) -> Evaluation:
    """Counts of correct responses into ``eval/counts.parquet``, and Pass@K from them."""
    node = config["evaluation"]
    settings = evaluation_settings(config)
    ks = [k for k in node["ks"] if k <= node["n"]]

    def run(stage: Stage, step: int) -> Row:
        assert isinstance(stage, ReinforcementStage)
        sampler = RankedSampler(stage.pieces.engine, stage.ranks)
        store = RankedCounts(folder.eval / "counts.parquet", stage.ranks)
        evaluate(sampler, task, node["split"], step, settings, store)
        if stage.ranks.rank:
            return {}
        rows = store.at(step, node["split"])
        n, c = rows["n"].to_numpy(), rows["c"].to_numpy()
        return {f"eval/pass@{k}": float(pass_at_k(n, c, k).mean()) for k in ks}

    return run


def exact_evaluation(config: Config, folder: RunFolder) -> Evaluation:
    """Exact probabilities into ``eval/probabilities.parquet``, and Pass@K from them."""
    node = config["evaluation"]

    def run(stage: Stage, step: int) -> Row:
        assert isinstance(stage, ImageStage)
        store = ProbabilityStore(folder.eval / "probabilities.parquet")
        evaluate_images(
            stage.policy, stage.task, node["split"], step, store, stage.ranks, stage.workers
        )
        if stage.ranks.rank:
            return {}
        return probability_metrics(store, step, node["split"], node["ks"])

    return run
