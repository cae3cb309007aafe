"""What can be found wrong in the numbers of a configuration before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from waterline.runs import BadInput, build

Config = Mapping[str, Any]


def check_numbers(config: Config) -> None:
    """The whole numbers of both stages, and the device.

    Raises:
        BadInput: One is none, or there is no GPU where one is asked for.
    """
    if not isinstance(config["seed"], int):
        raise BadInput(f"seed={config['seed']}: must be a whole number.")
    paths = ["allocation.n0"]
    for stage in ("training", "supervised"):
        if stage not in config:
            continue  # a task without a supervised start
        paths += [f"{stage}.{key}" for key in ("batch", "steps", "checkpoint_every", "log_every")]
    for path in paths:
        section, key = path.split(".")
        value = config[section][key]
        if not isinstance(value, int) or value < 1:
            raise BadInput(f"{path}={value}: must be a whole number of at least 1.")
    workers = config["trainer"]["workers"]
    if not isinstance(workers, int) or workers < 0:
        raise BadInput(f"trainer.workers={workers}: must be a whole number of at least 0.")
    if config["trainer"]["accelerator"] in ("gpu", "cuda") and not torch.cuda.is_available():
        raise BadInput(
            "trainer.accelerator asks for a GPU and none is found: take trainer=cpu with "
            "trainer.devices=1, or run where there is one."
        )


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
