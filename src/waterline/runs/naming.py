"""Where a run lies, and what makes it that run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waterline.runs.folder import RunFolder
from waterline.runs.settings_name import settings_name

Config = Mapping[str, Any]
# What a supervised run reads; it serves all methods of an experiment and seed.
_SUPERVISED = (
    "experiment", "seed", "task", "policy", "supervised", "engine", "trainer", "logger", "paths",
    "rewards", "evaluation",
)  # fmt: skip


def supervised_config(config: Config) -> dict[str, Any]:
    """The part of a configuration that supervised training reads."""
    return {key: config[key] for key in _SUPERVISED if key in config} | {"method": "base"}


def base_folder(config: Config) -> RunFolder:
    """``<results>/<experiment>/base/seed-<n>``."""
    root = Path(config["paths"]["results"]) / config["experiment"] / "base"
    return RunFolder(root / f"seed-{config['seed']}")


def run_folder(config: Config, default: Config) -> RunFolder:
    """``<results>/<experiment>/<method>/<settings>/seed-<n>``."""
    return RunFolder.of(
        config["paths"]["results"],
        config["experiment"],
        config["method"],
        settings_name(config, default),
        config["seed"],
    )
