"""Hydra's configurations as plain data."""

from __future__ import annotations

from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

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
