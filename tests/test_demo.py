"""The demo: its base, its problem, its sentences, and the whole of it with tiny numbers."""

import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import hydra
import numpy as np
import pandas as pd
import pytest
import yaml

from waterline.evaluation import pass_at_k
from waterline.launch.configuration import plain
from waterline.reporting.kinds import Kind
from waterline.reporting.rows import Row, collect
from waterline.runs import RunFolder
from waterline.training.evaluate_run import evaluate_run

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / "data" / "maze-demo-base.pt"
MADE = json.loads((ROOT / "data" / "maze-demo-base.provenance.json").read_text())
TINY = (
    "training.steps=4", "training.batch=4", "task.train=8", "task.dev=8", "task.sft=4",
    "evaluation.every=2", "allocation.n0=4",
)  # fmt: skip


def composed(*overrides: str) -> dict[str, Any]:
    with hydra.initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return plain(hydra.compose("train", ["experiment=maze/demo", "method=sera", *overrides]))


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "experiments" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_base_is_the_one_of_its_provenance() -> None:
    content = BASE.read_bytes()
    assert len(content) == MADE["bytes"] < 1_000_000
    assert hashlib.sha256(content).hexdigest() == MADE["sha256"]
    assert MADE["run"]["command"] == MADE["commands"][0]
    assert MADE["run"]["git"]["dirty"] is False
    assert MADE["run"]["restarts"] == []


def test_the_base_solves_few_mazes_at_once_and_most_in_32_tries(tmp_path: Path) -> None:
    """On 64 dev mazes with 64 responses each Pass@1 is 14% and Pass@32 76% where it was made."""
    folder = RunFolder(tmp_path / "seed-0")
    config = composed("task.dev=64", "task.sft=4", "task.train=4", "task.test=1")
    folder.checkpoints.mkdir(parents=True)
    folder.config.write_text(yaml.safe_dump(config | {"method": "base"}))
    (folder.checkpoints / "final.pt").write_bytes(BASE.read_bytes())
    evaluate_run(folder.root, split="dev", n=64)
    counts = pd.read_parquet(folder.eval / "counts.parquet")
    n, c = counts["n"].to_numpy(), counts["c"].to_numpy()
    assert len(counts) == 64
    assert (n == 64).all()
    assert 0.10 < pass_at_k(n, c, 1).mean() < 0.19
    assert 0.68 < pass_at_k(n, c, 32).mean() < 0.84


def test_all_methods_start_from_the_base_and_most_steps_follow_the_first_epoch() -> None:
    config = composed()
    assert ROOT / config["base"]["path"] == BASE
    first_epoch = config["task"]["train"] / config["training"]["batch"]
    assert first_epoch / config["training"]["steps"] < 0.1


def row(method: str, solved: np.ndarray) -> Row:
    """64 mazes of which each was solved ``solved`` times in 64 tries."""
    frame = pd.DataFrame({"n": 64, "c": solved}, index=pd.Index(range(len(solved)), name="prompt"))
    return Row(Kind(method=method), (), collect({0: frame}, method), 44)


def test_a_finding_says_ahead_behind_or_within_noise(demo: ModuleType) -> None:
    hard, easy = np.tile([0, 16], 32), np.tile([16, 32], 32)
    low, high, mixed = row("grpo", hard), row("maxrl", easy), row("sera", easy[::-1].copy())
    assert demo.finding(low, high, (1,)) == (
        "GRPO against MaxRL: behind at Pass@1, −25.0 points [−25.0, −25.0]."
    )
    assert demo.finding(high, low, (1, 64)) == (
        "MaxRL against GRPO: ahead at Pass@1, +25.0 points [+25.0, +25.0]; "
        "ahead at Pass@64, +50.0 points [+37.5, +62.5]."
    )
    assert demo.finding(mixed, high, (1,)).startswith("SERA against MaxRL: within noise at Pass@1")
    assert demo.from_base(low, [high, mixed], 1) == (
        "Pass@1 of the base, 12.5%, has changed by: MaxRL +25.0; SERA +25.0."
    )
    assert demo.from_base(high, [mixed], 1).endswith("SERA +0.0, within noise.")


def start(results: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "experiments/demo.py", *TINY, f"paths.results={results}"],
        cwd=ROOT, env=os.environ | {"COLUMNS": "80"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def logs_of(results: Path) -> list[Path]:
    return sorted((results / "maze-demo").glob("*/*/seed-0/metrics.jsonl"))


@pytest.mark.slow
def test_a_stopped_demo_leaves_nothing_running_and_continues(tmp_path: Path) -> None:
    import psutil

    process = start(tmp_path)
    limit = time.monotonic() + 240
    while len(logs_of(tmp_path)) < 3 and time.monotonic() < limit:
        time.sleep(0.1)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.strip() == "stopped: `make demo` continues where it was"
    assert not any(child.is_running() for child in children)

    process = start(tmp_path)
    printed, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count("Pass@K (%)") == 1
    assert printed.count("GRPO − MaxRL") == 1
    assert (tmp_path / "maze-demo" / "demo.png").stat().st_size > 10_000

    before = [log.stat().st_mtime_ns for log in logs_of(tmp_path)]
    process = start(tmp_path)
    again, _ = process.communicate(timeout=120)
    assert "All 3 jobs are done." in again
    assert (
        again[again.index("Pass@K (%)") :].splitlines()[:5]
        == (printed[printed.index("Pass@K (%)") :].splitlines()[:5])
    )
    assert [log.stat().st_mtime_ns for log in logs_of(tmp_path)] == before
