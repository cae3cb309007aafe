"""Evaluate a checkpoint of a run; see conf/evaluate.yaml."""

from pathlib import Path

import hydra
from omegaconf import DictConfig
from rich.console import Console

from waterline.evaluation import CountsStore
from waterline.launch.commands import job, run_command
from waterline.launch.configuration import plain
from waterline.launch.settings import Evaluate
from waterline.reporting import print_evaluations
from waterline.rollouts.ranks import process_group
from waterline.runs.settings import check_settings
from waterline.training.evaluate_run import evaluate_run

CONF = Path(__file__).resolve().parent.parent / "conf"

# Where Pass@K is exact, any K can be shown.
EXACT_KS = [1, 4, 16, 64, 256, 1024]


@hydra.main(version_base="1.3", config_path="../conf", config_name="evaluate")
def main(config: DictConfig) -> None:
    with job():
        settings = plain(config)
        check_settings(settings, {"": Evaluate})
        run, ks = settings.pop("run"), settings.pop("ks")
        ks = ks if ks is None or isinstance(ks, list) else [ks]
        with process_group() as ranks:
            store = evaluate_run(run, ks=ks, **settings)
            first = ranks.rank == 0
        if not first:
            return
        powers = [2**i for i in range(settings["n"].bit_length())]
        ks = ks or (powers if isinstance(store, CountsStore) else EXACT_KS)
        print_evaluations(Console(), store.read(), settings["split"], ks)


if __name__ == "__main__":
    run_command(main, CONF, "evaluate")
