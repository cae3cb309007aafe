"""What can be found wrong in the numbers of a configuration before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from waterline.runs import BadInput, build

Config = Mapping[str, Any]


def check_numbers(config: Config) -> None:
    """The whole numbers of both stages and of the evaluation, and the device.

    Raises:
        BadInput: One is none, or there is no GPU where one is asked for.
    """
    if not _is_whole(config["seed"], 0):
        raise BadInput(f"seed={config['seed']}: must be a whole number of at least 0.")
    least = {"allocation.n0": 1, "evaluation.every": 0, "trainer.workers": 0}
    for stage in ("training", "supervised"):
        if stage not in config:
            continue  # a task without a supervised start
        for key in ("batch", "steps", "checkpoint_every", "log_every"):
            least[f"{stage}.{key}"] = 1
    if "diagnostics_every" in config["training"]:
        least["training.diagnostics_every"] = 0
    for path, bound in least.items():
        section, key = path.split(".")
        if not _is_whole(config[section][key], bound):
            value = config[section][key]
            raise BadInput(f"{path}={value}: must be a whole number of at least {bound}.")
    ks = config["evaluation"]["ks"]
    if not isinstance(ks, Sequence) or not all(_is_whole(k, 1) for k in ks):
        raise BadInput(f"evaluation.ks={ks}: must be a list of whole numbers of at least 1.")
    if config["trainer"]["accelerator"] in ("gpu", "cuda") and not torch.cuda.is_available():
        raise BadInput(
            "trainer.accelerator asks for a GPU and none is found: take trainer=cpu with "
            "trainer.devices=1, or run where there is one."
        )


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and value >= least


def check_budget(allocator: Any, batch: int, n0: int) -> None:
    """A budget that cannot be met is found now, not when the first epoch is over."""
    n_min, n_max = getattr(allocator, "n_min", None), getattr(allocator, "n_max", None)
    if n_max is not None and n_max < n0:
        raise BadInput(
            f"allocation.n_max={n_max} times {batch} prompts is {n_max * batch} rollouts, fewer "
            f"than the budget of {n0 * batch}: raise allocation.n_max to at least n0={n0}."
        )
    if n_min is not None and n_min > n0:
        raise BadInput(f"allocation.n_min={n_min} is above n0={n0}: lower it to at most n0.")


def check_group_size(advantages: Config, n0: int) -> None:
    """Pass@k has no estimator from fewer than k samples."""
    k = advantages.get("k", 0)
    if k > n0:
        raise BadInput(
            f"advantages.k={k} is above allocation.n0={n0}, so that no group has a signal: lower "
            f"advantages.k to at most {n0}, or raise allocation.n0."
        )
    alone = build(advantages)(torch.ones(1), torch.zeros(1, dtype=torch.int64)) if n0 < 2 else None
    if alone is not None and not alone.any():
        raise BadInput(
            f"allocation.n0={n0}: a group baseline needs at least 2 rollouts per prompt."
        )
