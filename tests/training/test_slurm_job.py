"""A job of a table: what it runs, and that Slurm's warning leaves it to submitit to put it back."""

import pickle

import pytest

from waterline.launch.jobs import SlurmJob

submitit = pytest.importorskip("submitit")


def test_it_gives_what_the_command_printed() -> None:
    assert SlurmJob(("-c", "print('a b'); print('c')"))().strip().splitlines()[-1] == "c"


def test_the_command_outlives_the_warning() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGUSR2); print('alive')"
    assert SlurmJob(("-c", code))().strip() == "alive"


def test_a_failing_command_fails_the_job() -> None:
    with pytest.raises(submitit.core.utils.FailedJobError):
        SlurmJob(("-c", "raise SystemExit(3)"))()


def test_the_next_stay_runs_the_same_command() -> None:
    job = pickle.loads(pickle.dumps(SlurmJob(("experiments/train.py", "seed=1"))))
    again = job.checkpoint()
    assert again.function.command == ("experiments/train.py", "seed=1")
    assert (again.args, again.kwargs) == ((), {})
