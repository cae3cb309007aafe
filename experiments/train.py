"""Train one method on one experiment; see conf/train.yaml."""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from waterline.launch.commands import job, run_command
from waterline.launch.configuration import STAGES, default_config, plain
from waterline.rollouts.ranks import is_first_process
from waterline.runs import unknown_name
from waterline.training.run import train, train_base

CONF = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(version_base="1.3", config_path="../conf", config_name="train")
def main(config: DictConfig) -> None:
    with job():
        if config.stage not in STAGES:
            raise unknown_name("stage", config.stage, STAGES)
        if config.stage == "base":
            folder = train_base(plain(config))
        else:
            folder = train(plain(config), default_config(config.seed))
        if is_first_process():
            print(f"{folder.root}: {folder.state()}")


if __name__ == "__main__":
    run_command(main, CONF, "train", required=("experiment", "method"))
