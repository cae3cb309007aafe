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


def launcher(name: str, *more: str) -> dict[str, object]:
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        chosen = {"experiment": "maze/laptop"} | dict(setting.split("=") for setting in more)
        overrides = [f"hydra/launcher={name}", "method=sera", *map("=".join, chosen.items())]
        config = hydra.compose("train", overrides, return_hydra_config=True)
    return dict(OmegaConf.to_container(config.hydra.launcher, resolve=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["slurm_cpu", "slurm_gpu"])
def test_slurm_presets(name: str) -> None:
    preset = launcher(name)
    assert str(preset["_target_"]).endswith(".SlurmJobs")
    assert preset["max_num_timeout"] >= 1  # Hydra's own default, 0, ends a run at its time limit
    assert preset["timeout_min"] * 60 > 10 * preset["signal_delay_s"]
    for site in ("account", "partition", "qos", "constraint"):
        assert preset[site] is None
    assert preset["dry_run"] is False


def test_a_run_gets_a_process_and_a_gpu_for_each_of_its_devices() -> None:
    preset = launcher("slurm_gpu", "experiment=maze/paper")
    assert (preset["tasks_per_node"], preset["gres"]) == (4, "gpu:4")
    assert launcher("slurm_gpu", "trainer=gpu")["gres"] == "gpu:1"
    assert launcher("slurm_cpu")["gres"] is None


def test_the_local_preset() -> None:
    assert str(launcher("local")["_target_"]).endswith(".LocalJobs")
