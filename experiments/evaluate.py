"""Evaluate a checkpoint of a run; see conf/evaluate.yaml."""

from pathlib import Path

import hydra
from omegaconf import DictConfig
from rich.console import Console

from waterline.reporting import print_counts
from waterline.runs import BadInput
from waterline.training.commands import job, run_command
from waterline.training.configuration import plain
from waterline.training.evaluate_run import evaluate_run

CONF = Path(__file__).resolve().parent.parent / "conf"


def shown_ks(ks: list[int] | None, n: int) -> list[int]:
    """The K to print: those asked for, or the powers of two up to n."""
    if ks is None:
        return [2**i for i in range(n.bit_length())]
    if beyond := [k for k in ks if k > n]:
        raise BadInput(f"Pass@{beyond[0]} needs more than n={n} responses: raise n or lower ks.")
    return ks


@hydra.main(version_base="1.3", config_path="../conf", config_name="evaluate")
def main(config: DictConfig) -> None:
    with job():
        settings = plain(config)
        run, ks = settings.pop("run"), shown_ks(settings.pop("ks"), settings["n"])
        store = evaluate_run(run, **settings)
        print_counts(Console(), store.read(), settings["split"], ks)


if __name__ == "__main__":
    run_command(main, CONF, "evaluate")
