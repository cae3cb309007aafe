"""The launcher presets compose, name no account, and let a job that reached its time continue."""

from pathlib import Path

import hydra
import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

CONF = Path(__file__).resolve().parents[2] / "conf"


@pytest.fixture(autouse=True)
def no_global_hydra() -> None:
    GlobalHydra.instance().clear()


def launcher(name: str) -> dict[str, object]:
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        overrides = [f"hydra/launcher={name}", "method=sera", "experiment=maze/laptop"]
        config = hydra.compose("train", overrides, return_hydra_config=True)
    return dict(OmegaConf.to_container(config.hydra.launcher, resolve=False))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["slurm_cpu", "slurm_gpu"])
def test_slurm_presets(name: str) -> None:
    preset = launcher(name)
    assert str(preset["_target_"]).endswith(".SlurmLauncher")
    assert preset["max_num_timeout"] >= 1  # Hydra's own default, 0, ends a run at its time limit
    assert preset["timeout_min"] * 60 > 10 * preset["signal_delay_s"]
    assert preset["tasks_per_node"] == 1
    for site in ("account", "partition", "qos", "constraint"):
        assert preset[site] is None
    assert preset["gres"] == ("gpu:1" if name == "slurm_gpu" else None)


def test_the_local_preset() -> None:
    assert str(launcher("local")["_target_"]).endswith(".LocalLauncher")
