"""Hydra's configurations as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from waterline.runs import BadInput, RunFolder, unknown_name

STAGES = ("base", "reinforcement")


def plain(config: DictConfig) -> dict[str, Any]:
    """The configuration resolved into dicts, lists and scalars."""
    container = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def default_config(seed: int) -> dict[str, Any]:
    """The same experiment and method as the running Hydra job's, without other overrides.

    What deviates from it names the run's folder; the seed, to which other settings may refer, has a
    folder level of its own.
    """
    choices = HydraConfig.get().runtime.choices
    chosen = [f"{group}={choices[group]}" for group in ("experiment", "method")]
    return plain(hydra.compose("train", overrides=[*chosen, f"seed={seed}"]))


def method_configs(
    run: str, methods: Sequence[str], budgets: Sequence[int] | None, n_max_per_n0: int, conf: Path
) -> list[dict[str, Any]]:
    """Configurations of methods in the experiment of the run in the folder ``run``.

    Args:
        methods: their names, files in ``conf``/method.
        budgets: N0, each of which every method gets; None for the experiment's own.
        n_max_per_n0: allocation.n_max over N0.

    Raises:
        BadInput: The folder holds no run, or a method or number is none.
    """
    config = RunFolder(run).read_config()
    for name, values in (("n0", budgets or ()), ("n_max_per_n0", [n_max_per_n0])):
        if any(not isinstance(value, int) or value < 1 for value in values):
            raise BadInput(f"{name}={values}: must be whole numbers of at least 1.")
    known = [Path(file).stem for file in (conf / "method").glob("*.yaml")]
    for method in methods:
        if method not in known:
            raise unknown_name("method", method, known)
    experiment = config["experiment"].replace("-", "/", 1)
    found = []
    for n0 in budgets or (None,):
        for method in methods:
            chosen = [f"experiment={experiment}", f"method={method}", f"seed={config['seed']}"]
            if n0 is not None:
                n_max = n0 * n_max_per_n0
                chosen += [f"allocation.n0={n0}", f"allocation.n_max={n_max}"]
            found.append(plain(hydra.compose("train", overrides=chosen)))
    return found
