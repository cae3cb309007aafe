"""Reproduce a table: train its rows, evaluate them on the test split, report.

Run through `make reproduce-table4`; see conf/reproduce.yaml. What is finished is not run again.
"""

import time
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from waterline.runs import BadInput
from waterline.training.commands import job, run_command
from waterline.training.jobs import Command, run_local, run_slurm

CONF = Path(__file__).resolve().parent.parent / "conf"
console = Console()


def run(config: DictConfig, kind: str, title: str, commands: list[Command]) -> dict[Command, str]:
    """Runs the commands where ``launcher`` says and shows each as it ends.

    ``kind`` is train or evaluate: which resources of ``config.slurm`` a job asks for.
    """
    console.print(f"\n[bold]{title}[/bold]: {len(commands)} jobs")
    began, done = time.monotonic(), 0

    def ended(command: Command, code: int, output: str) -> None:
        nonlocal done
        done += 1
        state = "done" if code == 0 else "[red]failed[/red]"
        minutes = (time.monotonic() - began) / 60
        console.print(f"  {done}/{len(commands)} {state} at {minutes:.1f} min: {' '.join(command)}")
        if code:
            console.print(output[-2000:], markup=False, highlight=False)

    if config.launcher == "local":
        return run_local(commands, config.workers, config.threads, ended)
    if config.launcher == "slurm":
        slurm: Any = OmegaConf.to_container(config.slurm, resolve=True)
        asked = slurm["options"] | slurm[kind][config.scale]
        options = {key: value for key, value in asked.items() if value is not None}
        return run_slurm(commands, options, f"{config.results}/.slurm", ended)
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
    for output in run_local(wanted, 1, config.threads, lambda *_: None).values():
        console.print(output, markup=False, highlight=False)


@hydra.main(version_base="1.3", config_path="../conf", config_name="reproduce")
def main(config: DictConfig) -> None:
    with job():
        reproduce(config)


if __name__ == "__main__":
    run_command(main, CONF, "reproduce")
