"""Jobs on a private Slurm of one node; skipped where Slurm is not installed."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from training.tiny import ROOT, TINY
from waterline.launch import slurm
from waterline.launch.jobs import Job
from waterline.launch.watch import Watch
from waterline.runs import BadInput

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
MISSING = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]


@pytest.fixture(scope="module")
def one_node(tmp_path_factory):
    if MISSING:
        pytest.skip(f"no {', '.join(MISSING)}: slurm/README.md says what to install")
    folder = tmp_path_factory.mktemp("slurm")
    env = os.environ | {"PORT": "16917"}
    script = str(ROOT / "slurm/one-node.sh")
    subprocess.run([script, "start", str(folder)], env=env, check=True, stdout=subprocess.DEVNULL)
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    yield folder
    subprocess.run([script, "stop", str(folder)], env=env, check=True)
    os.environ.pop("SLURM_CONF") if before is None else os.environ.update(SLURM_CONF=before)


def work(file: str) -> None:
    if "bad" in file:
        raise BadInput("no such maze")
    Path(file).write_text(os.environ["WATERLINE_COMMAND"])


@pytest.mark.slow
def test_what_needs_a_job_waits_for_it_and_is_cancelled_when_it_fails(
    one_node, tmp_path, monkeypatch
):
    monkeypatch.setattr(slurm, "_QUEUE_SECONDS", 2.0)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}/src:{ROOT}/tests")  # the job imports this file
    base, bad = Job("base", ("base",)), Job("bad", ("bad",))
    jobs = [base, bad, Job("row", ("row",), needs=base), Job("never", ("never",), needs=bad)]
    console = Console(file=io.StringIO(), width=80)
    with Watch(console, "Jobs", {job.name: None for job in jobs}) as watch:
        failed = slurm.run_slurm(
            jobs, watch, function=work, arguments=lambda job: (str(tmp_path / job.name),),
            parameters={"timeout_min": 5, "slurm_additional_parameters": {"comment": "x"}},
            folder=f"{tmp_path}/%j", max_num_timeout=0,
        )  # fmt: skip
    assert {f.job.name for f in failed} == {"bad", "never"}, failed
    assert "BadInput: no such maze" in console.file.getvalue()
    written = {name: (tmp_path / name) for name in ("base", "row")}
    assert written["row"].stat().st_mtime > written["base"].stat().st_mtime
    assert "pytest" in written["row"].read_text()
    assert not (tmp_path / "never").exists()


@pytest.mark.slow
def test_a_sweep_with_a_bad_job_runs_the_others(one_node, tmp_path):
    command = [
        sys.executable, "experiments/train.py", "-m", "hydra/launcher=slurm_cpu",
        "hydra.launcher.mem_gb=1", f"hydra.sweep.dir={tmp_path}/multirun", "experiment=maze/laptop",
        *TINY, "method=sera", "allocation.n_max=3,32", "training.steps=2", "final.split=test",
        "final.n=4", f"paths.results={tmp_path}",
    ]  # fmt: skip
    env = os.environ | {"PYTHONPATH": f"{ROOT}/src:{ROOT}/tests"}

    def call(*more):
        return subprocess.run(
            [*command, *more], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )

    dry = call("hydra.launcher.dry_run=true")
    assert dry.returncode == 2, dry.stderr
    assert "wrong (" in dry.stdout
    assert "to start: sera n_max=32" in dry.stdout
    assert not list(tmp_path.rglob("config.yaml"))
    done = call()
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: 1 of 2 jobs failed")
    assert "FAILED sera n_max=3: " in done.stdout
    (log,) = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("  log: ")]
    assert "of at most n_max = 3" in Path(log).read_text()
    (run,) = (tmp_path / "maze-laptop/sera").glob("*/seed-0")
    assert '"state": "done"' in (run / "final.json").read_text()
    assert (
        "experiments/train.py -m hydra/launcher=slurm_cpu" in (run / "provenance.json").read_text()
    )
