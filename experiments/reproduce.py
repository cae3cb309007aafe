"""Reproduce a table: train its rows, evaluate them on the test split, report.

Run through `make reproduce-table4`; see conf/reproduce.yaml. What is finished is not run again.
"""

from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from waterline.runs import BadInput
from waterline.training.commands import job, run_command
from waterline.training.job_watch import JobWatch
from waterline.training.jobs import Command, run_local, run_slurm

CONF = Path(__file__).resolve().parent.parent / "conf"
console = Console()


def run(config: DictConfig, kind: str, title: str, commands: list[Command]) -> dict[Command, str]:
    """Runs the commands where ``launcher`` says and shows each as it ends.

    ``kind`` is train or evaluate: which resources of ``config.slurm`` a job asks for.
    """
    with JobWatch(console, f"{title}: {len(commands)} jobs", len(commands)) as watch:
        if config.launcher == "local":
            return run_local(commands, config.workers, config.threads, watch.ended, watch.told)
        if config.launcher == "slurm":
            slurm: Any = OmegaConf.to_container(config.slurm, resolve=True)
            asked = slurm["options"] | slurm[kind][config.scale]
            options = {key: value for key, value in asked.items() if value is not None}
            return run_slurm(commands, options, f"{config.results}/.slurm", watch.ended)
    raise BadInput(f"launcher={config.launcher}: choose local or slurm.")


def reproduce(config: DictConfig) -> None:
    if config.table not in config.tables:
        known = ", ".join(str(k) for k in config.tables)
        raise BadInput(f"Table {config.table} cannot be run yet: choose among {known}.")
    entry = config.tables[config.table]
    if config.scale not in entry.n:
        raise BadInput(f"scale={config.scale}: choose among {', '.join(entry.n)}.")
    seeds = [config.seeds] if isinstance(config.seeds, int) else list(config.seeds)
    common = (
        f"experiment={entry.experiment}/{config.scale}",
        f"paths.results={config.results}",
        *config.overrides,
    )
    n = entry.n[config.scale] if config.n is None else config.n

    def train(*overrides: str) -> Command:
        return ("experiments/train.py", *common, *overrides)

    bases = [train("method=sera", "stage=base", f"seed={s}") for s in seeds]
    runs = [train(*row, f"seed={s}") for s in seeds for row in entry.runs]
    printed = run(config, "train", "Supervised start", bases)
    printed |= run(config, "train", "Reinforcement learning", runs)
    folders = [printed[c].strip().splitlines()[-1].rpartition(":")[0] for c in (*bases, *runs)]
    evaluations = [
        ("experiments/evaluate.py", f"run={folder}", "split=test", f"n={n}") for folder in folders
    ]
    run(config, "evaluate", "Evaluation on test", evaluations)
    report = ("experiments/report.py", f"scale={config.scale}", f"root={config.results}")
    wanted = [(*report, f"table={config.table}")]
    wanted += [(*report, f"figure={number}") for number in entry.figures]
    for output in run_local(wanted, 1, config.threads).values():
        console.print(output, markup=False, highlight=False)


@hydra.main(version_base="1.3", config_path="../conf", config_name="reproduce")
def main(config: DictConfig) -> None:
    with job():
        reproduce(config)


if __name__ == "__main__":
    run_command(main, CONF, "reproduce")
