"""Compare the methods' gradients at the checkpoints of one run; see conf/gradients.yaml."""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from waterline.training.commands import job, run_command
from waterline.training.configuration import method_configs, plain
from waterline.training.images.compare_run import compare_run

CONF = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(version_base="1.3", config_path="../conf", config_name="gradients")
def main(config: DictConfig) -> None:
    with job():
        settings = plain(config)
        run, methods = settings.pop("run"), settings.pop("methods")
        n0, factor = settings.pop("n0"), settings.pop("n_max_per_n0")
        configs = method_configs(run, methods, n0, factor)
        print(compare_run(run, configs, **settings))


if __name__ == "__main__":
    run_command(main, CONF, "gradients")
