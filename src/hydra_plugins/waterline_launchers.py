"""What ``conf/`` names: its launchers, which Hydra accepts from this package only, a resolver.

Hydra reads this file at every start, so what is heavy is imported where it is used. Its dataclass
needs types that are not strings: Hydra runs the file before it is a module.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf, SlurmQueueConf
from hydra_plugins.hydra_submitit_launcher.submitit_launcher import SlurmLauncher
from omegaconf import OmegaConf

if TYPE_CHECKING:
    from waterline.launch.jobs import Job
    from waterline.runs import BadInput


def _in_checkout(path: str) -> str:
    """``${checkout:results}``: a path of the checkout, as opened from the user's folder."""
    from waterline.runs import from_record

    return from_record(path)


OmegaConf.register_new_resolver("checkout", _in_checkout, replace=True)


class _Launches:
    """A sweep as a list of jobs; ``run`` takes any such list, as that of a table."""

    config: Any

    def run(self, jobs: "Sequence[Job]") -> "BadInput | None":
        raise AssertionError("a launcher says how jobs are run")

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        from waterline.launch.jobs import jobs_of

        script = self.config.hydra.job.config_name
        if error := self.run(jobs_of(job_overrides, script=script)):
            raise error
        return [JobReturn(status=JobStatus.COMPLETED) for _ in job_overrides]


class LocalJobs(_Launches, Launcher):
    """``workers`` processes at a time, of ``threads`` threads each, on this machine."""

    def __init__(self, workers: int, threads: int, dry_run: bool) -> None:
        self.workers, self.threads, self.dry_run = workers, threads, dry_run

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        self.config = config

    def run(self, jobs: "Sequence[Job]") -> "BadInput | None":
        from waterline.launch.jobs import carry_out
        from waterline.launch.local import run_local
        from waterline.runs.settings import Threads, Whole, require

        require("hydra.launcher.workers", self.workers, Whole)
        require("hydra.launcher.threads", self.threads, Threads)
        require("hydra.launcher.dry_run", self.dry_run, bool)
        job = self.config.hydra.job
        script = Path(sys.argv[0]).with_name(f"{job.config_name}.py")
        local = partial(
            run_local, script=script, logs=Path(self.config.hydra.sweep.dir),
            workers=self.workers, threads=self.threads,
        )  # fmt: skip
        resources = f"on this machine, {self.workers} at a time, threads of each: {self.threads}"
        return carry_out(jobs, local, resources, self.dry_run)


class SlurmJobs(_Launches, SlurmLauncher):
    """Jobs of a cluster; adds dependencies, a dry run and progress to Hydra's launcher."""

    def __init__(self, dry_run: bool, **params: Any) -> None:
        super().__init__(**params)
        self.dry_run = dry_run

    def run(self, jobs: "Sequence[Job]") -> "BadInput | None":
        from waterline.launch.jobs import carry_out
        from waterline.launch.slurm import run_slurm
        from waterline.runs.settings import Whole, WholeOrZero, require

        # Hydra has checked their types; a cluster would refuse what is out of range job by job.
        for name, hint in [*((n, Whole) for n in _COUNTS), *((n, WholeOrZero) for n in _OR_NONE)]:
            if (value := self.params.get(name)) is not None:
                require(f"hydra.launcher.{name}", value, hint)

        number = {job: index for index, job in enumerate(jobs)}

        def arguments(job: "Job") -> tuple[Any, ...]:
            index = number[job]
            state = Singleton.get_state()
            return list(job.overrides), "hydra.sweep.dir", index, f"job_{index}", state

        own = {k: v for k, v in self.params.items() if k not in ("submitit_folder", _TIMEOUTS)}
        shared = set(OmegaConf.structured(BaseQueueConf).keys())
        slurm = partial(
            run_slurm, function=self, arguments=arguments, folder=self.params["submitit_folder"],
            parameters={k if k in shared else f"slurm_{k}": v for k, v in own.items()},
            max_num_timeout=self.params[_TIMEOUTS],
        )  # fmt: skip
        resources = ", ".join(f"{k}={v}" for k, v in own.items() if v not in (None, {}, []))
        return carry_out(jobs, slurm, f"Slurm: {resources}", self.dry_run)

    def __call__(self, *arguments: Any) -> JobReturn:
        """In the job. A failure becomes the job's own, so that Slurm knows of it."""
        done = super().__call__(*arguments)
        if done.status is JobStatus.FAILED:
            raise done._return_value
        return done


_TIMEOUTS = "max_num_timeout"
_COUNTS = ("nodes", "tasks_per_node", "cpus_per_task", "mem_gb", "timeout_min", "array_parallelism")
_OR_NONE = (_TIMEOUTS, "signal_delay_s", "gpus_per_node")


@dataclass
class SlurmConf(SlurmQueueConf):
    """What a preset may set."""

    _target_: str = "hydra_plugins.waterline_launchers.SlurmJobs"
    stderr_to_stdout: bool = True
    dry_run: bool = False


ConfigStore.instance().store(group="hydra/launcher", name="slurm", node=SlurmConf())
