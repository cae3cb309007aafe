"""Train one method on one experiment; see conf/train.yaml."""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from waterline.launch.commands import run_command, train_job

CONF = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(version_base="1.3", config_path="../conf", config_name="train")
def main(config: DictConfig) -> None:
    train_job(config)


if __name__ == "__main__":
    run_command(main, CONF, "train", example=("experiment=maze/laptop", "method=sera"))
