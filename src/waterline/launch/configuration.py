"""Hydra's configurations as plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError

from waterline.runs import BadInput, RunFolder, unknown_name
from waterline.runs.paths import from_user, map_paths


def setting(key: str, value: Any) -> str:
    """An override in Hydra's grammar, whatever letters a text has."""
    if value is None:
        return f"{key}=null"
    if not isinstance(value, str):
        return f"{key}={value}"
    # Backslashes count as escapes before a quote alone.
    escaped = re.sub(r"(\\*)('|$)", lambda m: 2 * m[1] + ("\\'" if m[2] else ""), value)
    return f"{key}='{escaped}'"


def plain(config: DictConfig) -> dict[str, Any]:
    """The configuration resolved into dicts, lists and scalars, with paths that can be opened.

    Raises:
        BadInput: A setting is taken from another one that is not there, a path is none, or a
            ``_target_`` does not exist.
    """
    try:
        container = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except InterpolationResolutionError as error:
        reason = str(error).splitlines()[0]
        raise BadInput(
            f"{error.full_key} is taken from another setting, and that fails ({reason}): set "
            f"{error.full_key}=, or leave the piece that it belongs to to the experiment."
        ) from error
    assert isinstance(container, dict)
    return map_paths({str(key): value for key, value in container.items()}, from_user)


def default_config(seed: int, choices: Mapping[str, Any]) -> dict[str, Any]:
    """The experiment and the method of ``choices`` without other overrides.

    What deviates from it names the run's folder; the seed, to which other settings may refer, has a
    folder level of its own.
    """
    chosen = [f"{group}={choices[group]}" for group in ("experiment", "method")]
    return plain(hydra.compose("train", overrides=[*chosen, f"seed={seed}"]))


def method_configs(
    run: str, methods: Sequence[str], budgets: Sequence[int] | None, n_max_per_n0: int
) -> list[dict[str, Any]]:
    """Configurations of methods in the experiment of the run in the folder ``run``.

    Args:
        methods: their names, files in ``conf/method``.
        budgets: N0, each of which every method gets; None for the experiment's own.
        n_max_per_n0: allocation.n_max over N0.

    Raises:
        BadInput: The folder holds no run, or a method or number is none.
    """
    config = RunFolder(run).read_config()
    known = GlobalHydra.instance().config_loader().get_group_options("method")
    for method in methods:
        if method not in known:
            raise unknown_name("method", method, known)
    experiment = _experiment_of(config["experiment"])
    found = []
    for n0 in budgets or (None,):
        for method in methods:
            chosen = [f"experiment={experiment}", f"method={method}", f"seed={config['seed']}"]
            if n0 is not None:
                n_max = n0 * n_max_per_n0
                chosen += [f"allocation.n0={n0}", f"allocation.n_max={n_max}"]
            found.append(plain(hydra.compose("train", overrides=chosen)))
    return found


def _experiment_of(name: str) -> str:
    """The option of the group ``experiment`` whose runs are called ``name``."""
    loader = GlobalHydra.instance().config_loader()
    tasks = loader.get_group_options("experiment", ObjectType.GROUP)
    options = [
        f"{task}/{scale}"
        for task in tasks
        for scale in loader.get_group_options(f"experiment/{task}", ObjectType.CONFIG)
    ]
    for option in options:
        if option.replace("/", "-") == name:
            return option
    raise unknown_name("experiment", name, options)
