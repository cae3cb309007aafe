"""What the README shows is run as it stands there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from waterline.runs.metrics import glossary

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
SMALL = (
    "task.size=7 task.sft=64 task.train=32 task.dev=8 task.test=8 supervised.batch=16 "
    "supervised.steps=4 training.batch=8 training.steps=5 evaluation.n=4 evaluation.every=5 "
    "policy.model.hidden_size=16 policy.model.layers=2 policy.model.ffn=32 trainer.threads=1"
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def block_with(language: str, text: str) -> str:
    (found,) = [b for b in blocks(language) if text in b]
    return found


def test_the_lines_for_another_trainer_run_with_uneven_groups():
    scope: dict = {}
    exec(block_with("python", "generate_and_grade"), scope)
    rng = np.random.default_rng(0)
    ids = np.array([7, -3, 2**40, 11])
    success = dict(zip(ids.tolist(), [0.05, 0.3, 0.6, 0.9], strict=True))

    def grade(prompts: np.ndarray) -> np.ndarray:
        return np.array([float(rng.random() < success[q]) for q in prompts.tolist()])

    plan, _ = scope["step"](ids, grade)
    assert plan.uniform
    assert plan.counts.tolist() == [16] * 4
    scope["history"].end_epoch()
    plan, weighted = scope["step"](ids, grade)
    assert not plan.uniform
    assert len(set(plan.counts.tolist())) > 1
    assert plan.counts.sum() == len(weighted) == 64
    # Each active prompt keeps the total weight N0; centred advantages sum to 0 in each group.
    sums = np.zeros(len(ids))
    np.add.at(sums, plan.index, weighted.numpy())
    np.testing.assert_allclose(sums, 0.0, atol=1e-9)
    np.testing.assert_allclose((plan.counts * plan.weights)[plan.active], 16.0)


def test_the_worked_example_of_an_allocator_keeps_the_budget():
    scope: dict = {}
    exec(block_with("python", "NeymanAllocator"), scope)
    counts = scope["NeymanAllocator"]().allocate([0.02, 0.5, 0.9], n0=16)
    assert counts.sum() == 48
    assert counts[1] == counts.max()
    assert counts.min() >= 2


def test_the_page_of_metrics_is_the_table_of_the_code():
    assert (ROOT / "docs/metrics.md").read_text().endswith(glossary())


@pytest.mark.slow
def test_the_worked_example_becomes_a_method_by_three_files(tmp_path):
    """Copies the package and its configuration, adds what the README shows, and trains."""
    for part in ("src", "conf", "experiments"):
        shutil.copytree(ROOT / part, tmp_path / part)
    allocation = block_with("yaml", "NeymanAllocator")
    (tmp_path / "src/waterline/allocation/variance.py").write_text(
        block_with("python", "NeymanAllocator")
    )
    (tmp_path / "conf/allocation/neyman.yaml").write_text(allocation)
    (tmp_path / "conf/method/neyman.yaml").write_text(block_with("yaml", "method: neyman"))
    command = "experiments/train.py experiment=maze/laptop method=neyman"
    assert f"python {command}" in README
    result = subprocess.run(
        [sys.executable, *command.split(), *SMALL.split()],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    folder = tmp_path / "results/maze-laptop/neyman"
    assert list(folder.glob("*/seed-0/checkpoints/final.pt"))


@pytest.mark.slow
def test_the_commands_run_through_bash(tmp_path):
    """Each command of 'Train, evaluate, sweep' as it stands, with sizes cut down behind it."""
    lines = block_with("bash", "experiments/evaluate.py").strip().splitlines()
    assert len(lines) == 3
    for line in lines:
        if "evaluate.py" in line:
            run = re.search(r"run=(\S+)", line)[1]
            # The run of the first command is named by what was cut down beside n0 and n_max.
            (made,) = (tmp_path / "results/maze-laptop/sera").glob("n0-16_nmax-64*/seed-0")
            assert run.startswith("results/maze-laptop/sera/n0-16_nmax-64")
            line = line.replace(run, str(made.relative_to(tmp_path))) + " n=4 threads=1"
        else:
            line += f" {SMALL}"
            line = line.replace("seed=0,1,2", "seed=0,1")
        for part in ("conf", "experiments"):
            if not (tmp_path / part).exists():
                (tmp_path / part).symlink_to(ROOT / part)
        result = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env=os.environ
            | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
               "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        assert result.returncode == 0, line + result.stdout[-1000:] + result.stderr[-2000:]
    results = tmp_path / "results/maze-laptop"
    final = "*/seed-*/checkpoints/final.pt"
    done = {method: len(list(results.glob(f"{method}/{final}"))) for method in ("maxrl", "sera")}
    # MaxRL: two n0 and two seeds, whatever n_max; SERA: two n0, two n_max and two seeds.
    assert done == {"maxrl": 4, "sera": 8}
