"""Compare the methods' gradients at the checkpoints of one run; see conf/gradients.yaml."""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from waterline.launch.commands import job, run_command
from waterline.launch.configuration import method_configs, plain
from waterline.training.gradients.compare_run import compare_run

CONF = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(version_base="1.3", config_path="../conf", config_name="gradients")
def main(config: DictConfig) -> None:
    with job():
        settings = plain(config)
        run, factor = settings.pop("run"), settings.pop("n_max_per_n0")
        for key in ("methods", "n0", "checkpoints"):
            if settings[key] is not None and not isinstance(settings[key], list):
                settings[key] = [settings[key]]
        configs = method_configs(run, settings.pop("methods"), settings.pop("n0"), factor, CONF)
        print(compare_run(run, configs, **settings))


if __name__ == "__main__":
    run_command(main, CONF, "gradients")
