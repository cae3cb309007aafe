"""Jobs of a Slurm cluster, submitted by submitit and waited for."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from waterline.launch.jobs import Failure, Job
from waterline.launch.watch import Watch
from waterline.runs import BadInput
from waterline.runs.provenance import COMMAND, user_command

_POLL_SECONDS = 2.0
_QUEUE_SECONDS = 20.0


def run_slurm(
    jobs: Sequence[Job],
    watch: Watch,
    *,
    function: Callable[..., Any],
    arguments: Callable[[Job], tuple[Any, ...]],
    parameters: Mapping[str, Any],
    folder: str,
    max_num_timeout: int,
) -> list[Failure]:
    """Submits ``function(*arguments(job))`` for each job; waits until all have left the queue.

    Jobs that need the same job are one array with a dependency on it: Slurm starts them when it has
    succeeded and cancels them when it has failed.

    Args:
        parameters: submitit's.
        folder: of the logs; holds '%j' for the job's number.
        max_num_timeout: how often a job that reached its time limit is put back.

    Raises:
        BadInput: There is no Slurm, or it does not accept the jobs.
    """
    import submitit
    from submitit.core.utils import environment_variables

    submitted: dict[Job, Any] = {}
    try:
        for needs, group in groupby(jobs, key=lambda job: job.needs):
            together = list(group)
            executor = submitit.AutoExecutor(
                cluster="slurm", folder=folder, slurm_max_num_timeout=max_num_timeout
            )
            executor.update_parameters(**_after(submitted.get(needs), parameters))
            columns = zip(*map(arguments, together), strict=True)
            with environment_variables(**{COMMAND: user_command()}):
                array = executor.map_array(function, *columns)
            submitted |= zip(together, array, strict=True)
    except (RuntimeError, subprocess.CalledProcessError) as error:  # no srun, or sbatch refuses
        last = str(error).strip().splitlines()[-1]
        raise BadInput(
            f"Slurm did not accept the jobs ({last}): see `sinfo`, set what your cluster asks for, "
            "such as hydra.launcher.partition=, or use hydra/launcher=local."
        ) from error
    numbers = sorted({job.job_id.partition("_")[0] for job in submitted.values()}, key=int)
    watch.say(f"Slurm has the jobs {' '.join(numbers)}; they go on when this command is stopped")
    return _wait(submitted, watch)


def _after(needed: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of jobs that need a submitted one."""
    if needed is None:
        return dict(parameters)
    # Without the second option Slurm would keep them in its queue for ever when that one fails.
    extra = {"dependency": f"afterok:{needed.job_id}", "kill-on-invalid-dep": "yes"}
    key = "slurm_additional_parameters"
    return {**parameters, key: parameters.get(key, {}) | extra}


def _wait(submitted: Mapping[Job, Any], watch: Watch) -> list[Failure]:
    """Until each job has written its result, or has left the queue without one."""
    waiting, failed = dict(submitted), []
    asked, missed = time.monotonic(), set[Job]()
    while waiting:
        time.sleep(_POLL_SECONDS)
        gone = set[Job]()
        if time.monotonic() - asked > _QUEUE_SECONDS:
            asked, before, queued = time.monotonic(), missed, _queue()
            missed = {job for job, s in waiting.items() if queued and s.job_id not in queued}
            gone = missed & before  # twice: the result may arrive late on a shared file system
        for job, task in list(waiting.items()):
            first = task.task(0)  # of the processes of a run, the first writes and reports
            if first.paths.result_pickle.exists():
                reason = _reason(first.exception())
            elif job in gone:
                reason = "Slurm ended it: cancelled, out of memory, or what it needs has failed"
            else:
                continue
            del waiting[job]
            if reason is not None:
                log = first.paths.stdout
                failed.append(Failure(job, reason, log if log.exists() else None))
            watch.ended(job.name, reason)
    return failed


def _reason(error: BaseException | None) -> str | None:
    """The last line of the traceback in submitit's message, which frames it by dashes."""
    return None if error is None else str(error).split(22 * "-")[1].strip().splitlines()[-1]


def _queue() -> set[str] | None:
    """The user's jobs in the queue and an entry that is none; None where Slurm does not answer."""
    command = ["squeue", "--me", "--noheader", "--array", "--format=%i"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"", *answer.stdout.split()} if answer.returncode == 0 else None
