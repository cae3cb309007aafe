"""A run of one process that is started inside another job's environment."""

import os

import pytest

from waterline.launch.commands import forget_ranks
from waterline.rollouts import is_first_process

# What torchrun, Slurm, Open MPI, MPICH and LSF leave in the environment of their processes.
OTHERS = {
    "RANK": "1", "LOCAL_RANK": "1", "NODE_RANK": "1", "GROUP_RANK": "1", "ROLE_RANK": "1",
    "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "node", "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "none", "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_NODEID": "1",
    "SLURM_NTASKS": "4", "SLURM_NTASKS_PER_NODE": "2", "SLURM_NPROCS": "4",
    "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "PMI_RANK": "1", "PMI_SIZE": "4",
    "JSM_NAMESPACE_RANK": "1", "LSB_DJOB_RANKFILE": "/none",
}  # fmt: skip


def test_what_a_surrounding_job_says_of_ranks_is_forgotten(monkeypatch):
    for name, value in OTHERS.items():
        monkeypatch.setenv(name, value)
    kept = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "2", "PATH": os.environ["PATH"]}
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    assert not is_first_process()
    forget_ranks()
    assert is_first_process()
    assert not set(OTHERS) & set(os.environ)
    assert {name: os.environ[name] for name in kept} == kept


@pytest.mark.parametrize("name", ["RANK", "SLURM_PROCID", "NODE_RANK", "LOCAL_RANK"])
def test_any_of_them_alone_would_have_silenced_the_run(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert not is_first_process()
    forget_ranks()
    assert is_first_process()
