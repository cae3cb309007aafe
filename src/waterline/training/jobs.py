"""Many commands of this project, a few at a time or as jobs of a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from waterline.runs import BadInput

Command = tuple[str, ...]
# Called with a command, its return code and what it printed, as each command ends.
Ended = Callable[[Command, int, str], None]


def run_local(
    commands: Sequence[Command], workers: int, threads: int, ended: Ended
) -> dict[Command, str]:
    """Runs ``python`` with each command's arguments, ``workers`` at a time; gives their output.

    Each process gets ``threads`` threads, so that a result does not depend on how busy the machine
    was. A failure does not stop the others.

    Raises:
        BadInput: When some failed, naming the first.
    """
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))

    def call(command: Command) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command], env=os.environ | limits, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    output: dict[Command, str] = {}
    with ThreadPoolExecutor(workers) as pool:
        waiting = {pool.submit(call, command): command for command in commands}
        for future in as_completed(waiting):
            command, result = waiting[future], future.result()
            ended(command, result.returncode, result.stdout)
            if result.returncode == 0:
                output[command] = result.stdout
    return _all_of(commands, output)


def run_slurm(
    commands: Sequence[Command], options: Mapping[str, Any], logs: str, ended: Ended
) -> dict[Command, str]:
    """Submits each command as a Slurm job through submitit and waits for all of them.

    ``options`` are submitit's parameters (``timeout_min``, ``slurm_partition``, …); the jobs'
    logs go to the folder ``logs``.

    Raises:
        BadInput: When Slurm is not there, or some jobs failed, naming the first.
    """
    import submitit

    try:
        executor = submitit.AutoExecutor(folder=logs, cluster="slurm")
    except RuntimeError as error:
        raise BadInput(f"launcher=slurm: {error}; use launcher=local on this machine.") from error
    executor.update_parameters(**options)
    with executor.batch():
        jobs = [
            executor.submit(submitit.helpers.CommandFunction([sys.executable, *c], verbose=True))
            for c in commands
        ]
    output: dict[Command, str] = {}
    for command, job in zip(commands, jobs, strict=True):
        try:
            output[command] = job.result()
        except (
            submitit.core.utils.FailedJobError,
            submitit.core.utils.UncompletedJobError,
        ) as error:
            ended(command, 1, str(error))
        else:
            ended(command, 0, output[command])
    return _all_of(commands, output)


def _all_of(commands: Sequence[Command], output: dict[Command, str]) -> dict[Command, str]:
    failed = [c for c in commands if c not in output]
    if failed:
        raise BadInput(
            f"{len(failed)} of {len(commands)} jobs failed, the first "
            f"`python {' '.join(failed[0])}`: see what it printed above, mend it, and run the same "
            "command again; finished jobs are not run twice."
        )
    return output
