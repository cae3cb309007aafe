"""A table through its command: a failure among its jobs, the rest later, then nothing again."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from training.tiny import ROOT, TINY


@pytest.mark.slow
def test_a_table_is_reproduced_once_and_a_failure_stops_nothing_else(tmp_path):
    overrides = ",".join(f'"{setting}"' for setting in TINY)
    results = tmp_path / "a table, n=8 (tiny) größe"

    def call(*more):
        return subprocess.run(
            [
                sys.executable, "experiments/reproduce.py", "table=4", "seeds=0", "n=8",
                f"results='{results}'", f"overrides=[{overrides}]", *more,
            ],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip

    dry = call("dry_run=true")
    assert dry.returncode == 0, dry.stderr
    assert not results.exists()
    assert "to start: base seed=0" in dry.stdout
    line = next(x for x in dry.stdout.splitlines() if "after 'base seed=0': grpo" in x)
    grpo = Path(line.split(" in ")[1])
    grpo.mkdir(parents=True)
    (grpo / "provenance.json").write_text('{"identity": "of another"}')

    done = call()
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: 1 of 6 jobs failed")
    assert "FAILED grpo token_mean seed=0: error:" in done.stdout
    log = Path(re.search(r"  log: (.*)", done.stdout)[1])
    assert "other settings" in log.read_text()
    assert "SERA" in done.stdout  # the table has the rows that are there
    runs = {f.parent for f in results.rglob("config.yaml")}
    assert len(runs) == 1 + 4

    shutil.rmtree(grpo)
    written = {f: f.stat().st_mtime_ns for r in runs for f in r.rglob("*.pt")}
    done = call()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 6 jobs to run" in done.stdout
    assert {f: f.stat().st_mtime_ns for f in written} == written
    assert "All 6 jobs are done" in call().stdout
