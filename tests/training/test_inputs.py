"""The files of a run: found from anywhere, and refused once they have changed."""

import json
import shutil
from pathlib import Path

import pytest

from training.tiny import tiny
from waterline.launch.configuration import from_user, map_paths
from waterline.runs import BadInput, State
from waterline.tasks.maze.generate import generate_mazes
from waterline.training.evaluate_run import evaluate_run
from waterline.training.inputs import refuse_overlap
from waterline.training.run import train, train_base

SHORT = ("supervised.steps=2", "training.steps=2", "evaluation.every=0", "task.sft=40")


def write(file, count=120, seed=0):
    mazes = generate_mazes(7, seed, "train", count, set())
    lines = [json.dumps({"sequence": grid.prompt_text() + way}) for grid, way in mazes]
    file.write_text("\n".join(lines) + "\n")


def configs(results, *more):
    config, default = tiny(results, *SHORT, *more)
    return map_paths(config, from_user), default


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A finished run of a file that was named from the folder where it lies."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    write(tmp_path / "cwd" / "mazes.jsonl")
    folder = train(*configs(tmp_path / "results", "task.path=mazes.jsonl"))
    assert set(folder.inputs()) == {"task"}
    return folder


def test_a_file_named_from_one_folder_is_found_from_another(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(evaluate_run(run.root, split="test", n=2).read()) > 0
    same = configs(tmp_path / "results", "task.path=cwd/mazes.jsonl")
    assert train(*same).root == run.root
    shutil.move(tmp_path / "results", tmp_path / "moved")
    moved = tmp_path / "moved" / run.root.relative_to(tmp_path / "results")
    assert len(evaluate_run(moved, split="test", n=4).read()) > 0


def test_a_file_that_has_changed_is_refused_at_every_start(run, tmp_path):
    same = configs(tmp_path / "results", "task.path=mazes.jsonl")
    file = Path("mazes.jsonl")
    file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    for status in (State.done, State.preempted):
        run.set_state(status)
        with pytest.raises(BadInput, match=r"What task reads has changed since .* was begun"):
            train(*same)
    with pytest.raises(BadInput, match="has changed"):
        evaluate_run(run.root, split="test", n=2)
    with pytest.raises(BadInput, match="has changed"):
        train_base(same[0])
    run.set_state(State.done)
    file.unlink()
    # A finished run does not need its files any more.
    assert train(*same).root == run.root


def test_a_base_that_has_changed_is_refused(run, tmp_path):
    base = tmp_path / "results" / "maze-laptop" / "base" / "seed-0" / "checkpoints" / "final.pt"
    copy = tmp_path / "base.pt"
    shutil.copy(base, copy)
    asked = configs(tmp_path / "other", "task.path=mazes.jsonl", f"base.path={copy}")
    folder = train(*asked)
    assert set(folder.inputs()) == {"task", "base.path"}
    copy.write_bytes(copy.read_bytes() + b"x")
    with pytest.raises(BadInput, match=r"What base.path reads has changed"):
        train(*asked)


def test_a_base_that_has_learned_from_the_test_set_is_refused(run, tmp_path):
    base = tmp_path / "results" / "maze-laptop" / "base" / "seed-0" / "checkpoints" / "final.pt"
    with pytest.raises(BadInput, match=r"\d+ of the prompts that the base .* are in dev or test"):
        train(*configs(tmp_path / "o", f"base.path={base}", "task.path=mazes.jsonl", "task.seed=3"))
    assert not (tmp_path / "o").exists()
    asked = configs(tmp_path / "o", f"base.path={base}", "task.path=mazes.jsonl")[0]
    refuse_overlap(asked, None)  # the same splits: nothing is built
