"""A job is one run: its overrides, its folder, and what has to be done there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import hydra
from omegaconf import open_dict
from omegaconf.errors import MissingMandatoryValue
from rich.console import Console

from waterline.launch.configuration import default_config, plain
from waterline.launch.finish import finished
from waterline.launch.watch import Watch, progress, say
from waterline.runs import BadInput, State
from waterline.runs.naming import base_folder, run_folder, supervised_config


@dataclass(frozen=True, eq=False)
class Job:
    """A command of ``experiments/`` to be run in a process of its own.

    Args:
        name: what tells it from its neighbours, such as 'sera seqnorm seed=1'.
        overrides: the arguments of the script, in Hydra's grammar.
        folder: of its run; None where the command makes no run or its settings are wrong.
        done: whether the run is finished, with what ``final`` asks for.
        needs: the job that must succeed before this one starts.
        wrong: what is wrong with its settings, if anything; the job itself reports it too.
    """

    name: str
    overrides: tuple[str, ...]
    folder: Path | None = None
    done: bool = False
    needs: Job | None = None
    wrong: str | None = None


@dataclass(frozen=True)
class Failure:
    """Why a job did not succeed, in one line, and the file of its output."""

    job: Job
    reason: str
    log: Path | None = None


# Runs jobs until each has ended, reports the state of each to the watch.
Runner = Callable[[Sequence[Job], Watch], list[Failure]]


def jobs_of(
    overrides: Sequence[Sequence[str]],
    needs: Sequence[int | None] | None = None,
    script: str = "train",
) -> list[Job]:
    """Jobs of ``experiments/<script>.py``; Hydra must have been initialised with ``conf/``.

    ``needs`` gives for each the index of the job, further up in the list, that it waits for. Jobs
    of one folder become one job: they differ in settings that their run does not read.
    """
    made: list[Job] = []
    folders: dict[Path, Job] = {}
    for index, (name, row) in enumerate(zip(names(overrides), overrides, strict=True)):
        folder, done, wrong = None, False, None
        if script == "train":
            try:
                folder, done = _run_of(row)
            except (BadInput, MissingMandatoryValue) as error:
                wrong = str(error).splitlines()[0]
        before = needs[index] if needs else None
        first = None if before is None else made[before]
        job = Job(name, tuple(row), folder, done, first, wrong)
        made.append(folders.setdefault(folder, job) if folder else job)
    return list(dict.fromkeys(made))


def _run_of(overrides: Sequence[str]) -> tuple[Path, bool]:
    """The folder of a run of ``experiments/train.py``, and whether it is finished.

    Raises:
        BadInput: Its settings are wrong.
    """
    from waterline.training.assemble import check_config  # which needs torch

    composed = hydra.compose("train", overrides=list(overrides), return_hydra_config=True)
    with open_dict(composed):
        choices = composed.pop("hydra").runtime.choices
    config = plain(composed)
    check_config(config)
    if config["stage"] == "base":
        folder, read = base_folder(config), supervised_config(config)
    else:
        default = default_config(config["seed"], choices)
        folder, read = run_folder(config, default), config
    if folder.state() is not State.done or not finished(folder, config["final"]):
        return folder.root, False
    # Imported here, since it needs torch, and most jobs that are listed are not done.
    from waterline.training.inputs import check_done

    check_done(folder, read)
    return folder.root, True


def require_right(jobs: Sequence[Job]) -> None:
    """Raises BadInput for the first job whose settings are wrong.

    For jobs that share their settings, so that what is wrong with one is wrong with all of them.
    """
    for job in jobs:
        if job.wrong:
            raise BadInput(job.wrong)


def names(overrides: Sequence[Sequence[str]]) -> list[str]:
    """A short name of each job: method, losses, whatever not all jobs share, seed."""
    count = Counter(setting for row in overrides for setting in set(row))
    named: list[str] = []
    for row in overrides:
        values = dict(setting.partition("=")[::2] for setting in row)
        seed = values.pop("seed", None)
        first = [values.pop(key) for key in ("method", "losses") if key in values]
        parts = ["base"] if values.pop("stage", None) == "base" else first
        for key, value in values.items():
            if count[f"{key}={value}"] < len(overrides) and not key.startswith("final."):
                parts.append(f"{key.rpartition('.')[2]}={value}")
        parts += [] if seed is None else [f"seed={seed}"]
        name = " ".join(parts or row)
        named.append(name if name not in named else f"{name} (job {len(named)})")
    return named


def carry_out(
    jobs: Sequence[Job], run: Runner, resources: str, dry_run: bool = False
) -> BadInput | None:
    """Runs the jobs that are not done and prints what became of them.

    Returns:
        None when all are done, or else an error that says how many are not.
    """
    console = Console()
    missing = [job for job in jobs if not job.done]
    title = f"{len(missing)} of {len(jobs)} jobs to run ({resources})"
    if dry_run:
        say(console, title)
        for job in jobs:
            where = f" in {job.folder}" if job.folder else ""
            say(console, f"  {_standing(job)}: {job.name}{where}")
        if wrong := sum(job.wrong is not None for job in jobs):
            return BadInput(f"{wrong} of {len(jobs)} jobs have wrong settings: fix them.")
        return None
    if not missing:
        say(console, f"All {len(jobs)} jobs are done.")
        return None
    with Watch(console, title, {job.name: job.folder for job in missing}) as watch:
        failed = run(missing, watch)
    for failure in failed:
        say(console, f"FAILED {failure.job.name}: {failure.reason}")
        say(console, f"  log: {failure.log or 'none, it was not started'}")
    if not failed:
        return None
    return BadInput(
        f"{len(failed)} of {len(jobs)} jobs failed: see their logs, fix the cause, and give the "
        "same command again; finished jobs are not run twice."
    )


def _standing(job: Job) -> str:
    if job.done:
        return "done"
    if job.wrong:
        return f"wrong ({job.wrong})"
    at = progress(job.folder) if job.folder else None
    start = "to start" if at is None else f"to continue at {at.step}/{at.of}"
    return f"{start} after '{job.needs.name}'" if job.needs and not job.needs.done else start
