"""Train one method on one experiment; see conf/train.yaml."""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from waterline.runs import sentence_errors
from waterline.training.configuration import default_config, plain
from waterline.training.run import train, train_base


@hydra.main(version_base="1.3", config_path="../conf", config_name="train")
def main(config: DictConfig) -> None:
    with sentence_errors():
        if config.stage == "base":
            folder = train_base(plain(config))
        else:
            folder = train(plain(config), default_config())
        print(f"{folder.root}: {folder.state()}")


if __name__ == "__main__":
    main()
