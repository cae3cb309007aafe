"""Reproduce a table: train its rows, evaluate them on the test split, report.

Run through `make reproduce-table4`; see conf/reproduce.yaml. What is finished is not run again.
"""

from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from waterline.launch.commands import job, run_command
from waterline.launch.job_watch import JobWatch
from waterline.launch.jobs import Command, run_local, run_slurm
from waterline.runs import BadInput

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


def overrides(entry: DictConfig, scale: str) -> list[tuple[str, ...]]:
    """The overrides of each run of a table."""
    budgets = entry.budgets[scale] if "budgets" in entry else []
    at_budgets = [
        (*row, f"allocation.n0={n0}", f"allocation.n_max={4 * n0}")
        for n0 in budgets
        for row in entry.runs_at_each_budget
    ]
    common = entry.overrides[scale] if "overrides" in entry else []
    return [(*row, *common) for row in (*entry.runs, *at_budgets)]


def reproduce(config: DictConfig) -> None:
    if config.table not in config.tables:
        known = ", ".join(str(k) for k in config.tables)
        raise BadInput(f"Table {config.table} cannot be run yet: choose among {known}.")
    if config.scale not in ("laptop", "paper"):
        raise BadInput(f"scale={config.scale}: choose among laptop, paper.")
    entry, scale = config.tables[config.table], config.scale
    seeds = [config.seeds] if isinstance(config.seeds, int) else list(config.seeds)
    common = (
        f"experiment={entry.experiment}/{scale}",
        f"paths.results={config.results}",
        *config.overrides,
    )

    def train(seed: int, *overrides: str) -> Command:
        return ("experiments/train.py", *common, *overrides, f"seed={seed}")

    bases = [train(s, "method=sera", "stage=base") for s in seeds] if entry.base else []
    runs = [train(s, *row) for s in seeds for row in overrides(entry, scale)]
    printed = run(config, "train", "Supervised start", bases) if bases else {}
    printed |= run(config, "train", "Training", runs)
    folders = {c: printed[c].strip().splitlines()[-1].rpartition(":")[0] for c in (*bases, *runs)}
    if entry.get("evaluated", True):
        n = ()
        if "n" in entry:
            n = (f"n={entry.n[scale] if config.n is None else config.n}",)
        test = [("experiments/evaluate.py", f"run={f}", "split=test", *n) for f in folders.values()]
        run(config, "evaluate", "Evaluation on test", test)
    if "gradients" in entry:
        steps = entry.gradients.checkpoints[scale]
        arguments = [f"n0={list(entry.budgets[scale])}"]
        arguments += [] if steps is None else [f"checkpoints={list(steps)}"]
        compared = [
            ("experiments/gradients.py", f"run={folder}", *arguments)
            for command, folder in folders.items()
            if entry.gradients.of in command
        ]
        run(config, "evaluate", "Gradients at shared parameters", compared)
    wanted = [
        ("experiments/report.py", f"scale={scale}", f"root={config.results}", report)
        for report in entry.reports
    ]
    run_local(
        wanted, 1, config.threads,
        lambda _, code, output: console.print(output, markup=False, highlight=False),
    )  # fmt: skip


@hydra.main(version_base="1.3", config_path="../conf", config_name="reproduce")
def main(config: DictConfig) -> None:
    with job():
        reproduce(config)


if __name__ == "__main__":
    run_command(main, CONF, "reproduce")
