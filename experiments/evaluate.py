"""Evaluate a checkpoint of a run; see conf/evaluate.yaml."""

import hydra
from omegaconf import DictConfig
from rich.console import Console

from waterline.reporting import print_counts
from waterline.runs import sentence_errors
from waterline.training.configuration import plain
from waterline.training.evaluate_run import evaluate_run


@hydra.main(version_base="1.3", config_path="../conf", config_name="evaluate")
def main(config: DictConfig) -> None:
    with sentence_errors():
        settings = plain(config)
        run, ks = settings.pop("run"), settings.pop("ks")
        store = evaluate_run(run, **settings)
        print_counts(Console(), store.read(), settings["split"], [k for k in ks if k <= config.n])


if __name__ == "__main__":
    main()
