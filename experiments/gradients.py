"""Compare the methods' gradients at the checkpoints of one run; see conf/gradients.yaml."""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from waterline.launch.commands import job, run_command
from waterline.launch.configuration import plain
from waterline.launch.finish import compare
from waterline.launch.settings import Gradients
from waterline.runs.settings import check_settings

CONF = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(version_base="1.3", config_path="../conf", config_name="gradients")
def main(config: DictConfig) -> None:
    with job():
        settings = plain(config)
        check_settings(settings, {"": Gradients})
        print(compare(settings))


if __name__ == "__main__":
    run_command(main, CONF, "gradients")
