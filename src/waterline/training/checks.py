"""What can be found wrong in the numbers of a configuration before anything is built."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from waterline.runs import BadInput, build
from waterline.runs.checks import require_whole
from waterline.runs.identity import leaves

Config = Mapping[str, Any]


def check_numbers(config: Config) -> None:
    """The whole numbers of both stages and of the evaluation, and the device.

    Raises:
        BadInput: One is none, or there is no GPU where one is asked for.
    """
    least = {"seed": 0, "allocation.n0": 1, "evaluation.every": 0, "trainer.workers": 0}
    least["training.diagnostics_every"] = 0
    for stage in ("training", "supervised"):
        for key in ("batch", "steps", "checkpoint_every", "log_every"):
            least[f"{stage}.{key}"] = 1
    values = leaves(config)
    for path, bound in least.items():
        if path in values:  # not every task has a supervised start, nor every stage diagnostics
            require_whole(path, values[path], bound)
    ks = config["evaluation"]["ks"]
    if not isinstance(ks, Sequence) or not all(isinstance(k, int) and k >= 1 for k in ks):
        raise BadInput(f"evaluation.ks={ks}: must be a list of whole numbers of at least 1.")
    if config["trainer"]["accelerator"] in ("gpu", "cuda") and not torch.cuda.is_available():
        raise BadInput(
            "trainer.accelerator asks for a GPU and none is found: take trainer=cpu with "
            "trainer.devices=1, or run where there is one."
        )


def check_group_size(advantages: Config, n0: int) -> None:
    """Pass@k has no estimator from fewer than k samples."""
    k = advantages.get("k", 0)
    if k > n0:
        raise BadInput(
            f"advantages.k={k} is above allocation.n0={n0}, so that no group has a signal: lower "
            f"advantages.k to at most {n0}, or raise allocation.n0."
        )
    alone = torch.ones(1), torch.zeros(1, dtype=torch.int64)  # the reward and id of one response
    if n0 < 2 and not build(advantages)(*alone).any():
        raise BadInput(
            f"allocation.n0={n0}: a group baseline needs at least 2 rollouts per prompt."
        )
