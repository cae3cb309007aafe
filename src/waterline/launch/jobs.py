"""Many commands of this project, a few at a time or as jobs of a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from subprocess import CalledProcessError
from typing import Any

from waterline.runs import BadInput

Command = tuple[str, ...]
# Called with a command, its return code and what it printed, as each command ends.
Ended = Callable[[Command, int, str], None]
# Called with a command and a line that it has printed.
Told = Callable[[Command, str], None]


def run_local(
    commands: Sequence[Command],
    workers: int,
    threads: int,
    ended: Ended = lambda *_: None,
    told: Told = lambda *_: None,
) -> dict[Command, str]:
    """Runs ``python`` with each command's arguments, ``workers`` at a time; gives their output.

    Each process gets ``threads`` threads, so that a result does not depend on how busy the machine
    was. A failure does not stop the others.

    Raises:
        BadInput: When some failed, naming the first.
    """
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))

    def call(command: Command) -> tuple[int, str]:
        lines = []
        with subprocess.Popen(
            [sys.executable, *command], env=os.environ | limits, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                told(command, line)
        return process.returncode, "".join(lines)

    output: dict[Command, str] = {}
    with ThreadPoolExecutor(workers) as pool:
        waiting = {pool.submit(call, command): command for command in commands}
        for future in as_completed(waiting):
            command, (code, printed) = waiting[future], future.result()
            ended(command, code, printed)
            if code == 0:
                output[command] = printed
    return _all_of(commands, output)


class SlurmJob:
    """A command as a job that submitit can put back into the queue and start anew."""

    def __init__(self, command: Command) -> None:
        self.command = command

    def __call__(self) -> str:
        """Runs ``python`` with the command's arguments and gives what it printed."""
        from submitit.helpers import CommandFunction

        # Slurm sends its warning to all processes of a job. Python would die of it, and the job
        # with it before submitit has put it back; an ignored signal stays ignored after exec.
        shell = ["sh", "-c", 'trap "" USR2; exec "$@"', "sh"]
        output: str = CommandFunction([*shell, sys.executable, *self.command], verbose=True)()
        return output

    def checkpoint(self) -> Any:
        """What submitit runs in the next stay: the same command, which continues its run."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def run_slurm(
    commands: Sequence[Command], options: Mapping[str, Any], logs: str, ended: Ended
) -> dict[Command, str]:
    """Submits each command as a Slurm job through submitit and waits for all of them.

    ``options`` are submitit's parameters (``timeout_min``, ``slurm_partition``, …), among them
    ``slurm_max_num_timeout``: how often a job that reached its time limit is put back. The jobs'
    logs go to the folder ``logs``. Of a job of several tasks, the first one's output counts.

    Raises:
        BadInput: When Slurm is not there, or some jobs failed, naming the first.
    """
    import submitit
    from submitit.core.utils import FailedSubmissionError

    parameters = dict(options)
    stays = parameters.pop("slurm_max_num_timeout", 0)
    try:
        executor = submitit.AutoExecutor(folder=logs, cluster="slurm", slurm_max_num_timeout=stays)
    except RuntimeError as error:
        raise BadInput(f"launcher=slurm: {error}; use launcher=local on this machine.") from error
    executor.update_parameters(**parameters)
    try:
        with executor.batch():
            jobs = [executor.submit(SlurmJob(command)) for command in commands]
    except (FailedSubmissionError, CalledProcessError) as error:
        last = str(error).strip().splitlines()[-1]
        raise BadInput(
            f"launcher=slurm: the jobs were not accepted ({last}); see `sinfo`, and the options "
            "under slurm in conf/reproduce.yaml."
        ) from error
    output: dict[Command, str] = {}
    for command, job in zip(commands, jobs, strict=True):
        try:
            output[command] = job.results()[0]
        except submitit.core.utils.UncompletedJobError as error:
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
