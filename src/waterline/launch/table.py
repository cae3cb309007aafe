"""A table of a paper as a list of jobs, run by the launcher that a sweep would use."""

from __future__ import annotations

import time
from typing import Any

from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.types import HydraContext, RunMode

from waterline.launch.commands import train_job
from waterline.launch.configuration import setting
from waterline.launch.jobs import jobs_of, require_right
from waterline.launch.settings import Reproduce
from waterline.runs import BadInput
from waterline.runs.settings import check_settings

Overrides = list[str]


def run_table(asked: dict[str, Any]) -> BadInput | None:
    """Runs what is missing of the table that the settings of ``conf/reproduce.yaml`` ask for.

    Returns:
        None when all its runs are done, or else an error that says how many are not.
    """
    check_settings(asked, {"": Reproduce})
    if asked["table"] not in asked["tables"]:
        known = ", ".join(map(str, asked["tables"]))
        raise BadInput(f"Table {asked['table']} cannot be run yet: choose among {known}.")
    scales = asked["tables"][asked["table"]].get("scales", [asked["scale"]])
    if asked["scale"] not in scales:
        raise BadInput(
            f"Table {asked['table']} exists at scale={scales[0]} alone, for it is about a "
            f"pretrained model: add scale={scales[0]}, or SCALE={scales[0]} to make."
        )
    rows, needs = _rows(asked)
    launcher = _launcher(asked, rows[-1])
    jobs = jobs_of(rows, needs)
    require_right(jobs)
    failed: BadInput | None = launcher.run(jobs)
    return failed


def _rows(asked: dict[str, Any]) -> tuple[list[Overrides], list[int | None]]:
    """The overrides of every run, and for each the index of the run that makes its base."""
    entry, scale = asked["tables"][asked["table"]], asked["scale"]
    seeds = [asked["seeds"]] if isinstance(asked["seeds"], int) else asked["seeds"]
    seeds = list(dict.fromkeys(seeds))
    budgets = entry["budgets"][scale] if "budgets" in entry else []
    at_budgets = [
        [*row, f"allocation.n0={n0}", f"allocation.n_max={4 * n0}"]
        for n0 in budgets
        for row in entry["runs_at_each_budget"]
    ]
    common = [
        f"experiment={entry['experiment']}/{scale}", setting("paths.results", asked["results"]),
        *entry.get("overrides", {scale: []})[scale],
    ]  # fmt: skip
    if entry.get("evaluated", True):
        common.append("final.split=test")
    if "n" in entry:
        n = entry["n"][scale] if asked["n"] is None else asked["n"]
        common.append(setting("final.n", n))
    common += asked["overrides"]
    rows, needs = [], list[int | None]()
    for seed in seeds:
        if entry["base"]:
            needs.append(None)
            rows.append(["method=sera", "stage=base", *common, f"seed={seed}"])
    for index, seed in enumerate(seeds):
        for row in [*entry["runs"], *at_budgets]:
            own = []
            if "gradients" in entry and entry["gradients"]["of"] in row:
                steps = entry["gradients"]["checkpoints"][scale]
                own = [setting("final.gradients.n0", budgets)]
                own += [setting("final.gradients.checkpoints", steps)]
            needs.append(index if entry["base"] else None)
            rows.append([*row, *common, *own, f"seed={seed}"])
    return rows, needs


def _launcher(asked: dict[str, Any], row: Overrides) -> Any:
    """The launcher of this command, made for runs of experiments/train.py."""
    here = HydraConfig.get()
    chosen = here.runtime.choices["hydra/launcher"]
    own = [o for o in here.overrides.hydra if o.startswith("hydra.launcher.")]
    folder = f"{asked['results']}/.jobs/{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    options = [
        f"hydra/launcher={chosen}", *own, "hydra.mode=MULTIRUN", setting("hydra.sweep.dir", folder)
    ]  # fmt: skip
    if asked["dry_run"]:
        options.append("hydra.launcher.dry_run=true")
    loader = GlobalHydra.instance().config_loader()
    # With a run's settings, for the launcher's own may refer to them: to trainer.devices.
    config = loader.load_configuration("train", [*options, *row], RunMode.MULTIRUN)
    context = HydraContext(config_loader=loader, callbacks=Callbacks())
    launcher = Plugins.instance().instantiate_launcher(context, train_job, config)
    if not hasattr(launcher, "run"):
        raise BadInput(f"hydra/launcher={chosen}: choose local, slurm_cpu or slurm_gpu.")
    return launcher
