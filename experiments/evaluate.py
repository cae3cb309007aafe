"""Evaluate a checkpoint of a run; see conf/evaluate.yaml."""

from pathlib import Path

import hydra
from omegaconf import DictConfig
from rich.console import Console

from waterline.launch.commands import job, run_command
from waterline.launch.configuration import plain
from waterline.launch.settings import Evaluate
from waterline.reporting import print_evaluations
from waterline.runs import BadInput, RunFolder
from waterline.runs.settings import Whole, check_settings, require, signature_hints
from waterline.runs.targets import locate
from waterline.training.evaluate_run import evaluate_run

CONF = Path(__file__).resolve().parent.parent / "conf"

# Where Pass@K is exact, any K can be shown.
EXACT_KS = [1, 4, 16, 64, 256, 1024]


def shown_ks(ks: list[int] | None, n: int) -> list[int]:
    """The K to print: those asked for, or the powers of two up to n."""
    require("n", n, Whole)
    if ks is None:
        return [2**i for i in range(n.bit_length())]
    if beyond := [k for k in ks if k > n]:
        raise BadInput(f"Pass@{beyond[0]} needs more than n={n} responses: raise n or lower ks.")
    return ks


@hydra.main(version_base="1.3", config_path="../conf", config_name="evaluate")
def main(config: DictConfig) -> None:
    with job():
        settings = plain(config)
        check_settings(settings, {"": Evaluate})
        run, ks = settings.pop("run"), settings.pop("ks")
        evaluation = locate(str(RunFolder(run).read_config()["evaluation"]["_target_"]))
        sampled = "n" in signature_hints(evaluation)
        ks = shown_ks(ks, settings["n"]) if sampled else ks or EXACT_KS
        store = evaluate_run(run, **settings)
        print_evaluations(Console(), store.read(), settings["split"], ks)


if __name__ == "__main__":
    run_command(main, CONF, "evaluate")
