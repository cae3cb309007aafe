"""Tasks, methods and a third kind of response that are added from outside, as docs/adding.md says.

They lie below ``tests/toys``: one file of Python for each, and a folder of configurations next to
``conf/`` with one YAML for each group that they extend.
"""

import re
import runpy
import sys

import pytest
import torch
from hydra.core.global_hydra import GlobalHydra

from training.kills import finish, start, stopped_at
from training.tiny import ROOT, differences, record
from waterline.runs import RunFolder, State, build, read_metrics
from waterline.training.assemble import token_level

TOYS = ROOT / "tests" / "toys"
CONF = ("--config-dir", str(TOYS / "conf"))
QUIET = ("trainer.threads=1", "trainer.enable_progress_bar=false")
EXPERIMENTS = ("words/tiny", "arms/tiny")


@pytest.fixture
def command(monkeypatch, capfd):
    """Calls an experiment's script in this process as the command line would."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")  # so that it is put back

    def call(script, *arguments):
        monkeypatch.setattr(sys, "argv", [f"experiments/{script}.py", *arguments])
        GlobalHydra.instance().clear()
        runpy.run_path(f"experiments/{script}.py", run_name="__main__")
        return capfd.readouterr().out

    return call


def trained(command, results, *settings):
    command("train", *CONF, *settings, *QUIET, f"paths.results={results}")
    return RunFolder(next(results.rglob("config.yaml")).parent)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("method", ["maxrl", "sera"])
def test_a_task_from_outside_is_trained_and_evaluated(command, tmp_path, experiment, method):
    folder = trained(command, tmp_path, f"experiment={experiment}", f"method={method}")
    assert folder.state() is State.done
    rows = {row["step"]: row for row in read_metrics(folder.metrics)}
    assert rows[0]["eval/pass@1"] < 0.4
    assert rows[40]["eval/pass@1"] > rows[0]["eval/pass@1"] + 0.3
    assert rows[40]["reward/mean"] > rows[1]["reward/mean"] + 0.3
    if method == "sera":
        assert any(row.get("allocation/waterline") for row in rows.values())
    out = command("evaluate", f"run={folder.root}", "split=test", "n=32")
    assert "test" in out
    counts = folder.eval / "counts.parquet"
    assert counts.exists()


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_methods_from_outside_serve_every_kind_of_response(command, tmp_path, experiment):
    folder = trained(command, tmp_path, f"experiment={experiment}", "method=dapo",
                     "training.steps=3", "advantages=discounted")  # fmt: skip
    rows = read_metrics(folder.metrics)
    assert max(row.get("rollouts/total", 0) for row in rows) > 3 * 8 * 8, "more candidates"


def test_a_run_of_a_third_kind_resumes_with_the_same_bits(command, tmp_path, monkeypatch):
    own = (
        "experiment=arms/tiny",
        "method=sera",
        "training.steps=12",
        "training.checkpoint_every=3",
    )
    whole = trained(command, tmp_path / "whole", *own)
    for step in (4, 9):
        with stopped_at(monkeypatch, step, late=step == 9):
            trained(command, tmp_path / "stopped", *own)
    stopped = trained(command, tmp_path / "stopped", *own)
    assert differences(record(stopped.root), record(whole.root)) == []


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_commands_of_a_user_with_one_and_two_ranks(tmp_path, experiment):
    runs = []
    for devices in (1, 2):
        results = tmp_path / str(devices)
        settings = (*CONF, f"experiment={experiment}", "method=sera", *QUIET,
                    "training.optimizer.eps=1e-3", "training.steps=8")  # fmt: skip
        extra = [f"trainer.devices={devices}"]
        if experiment == "arms/tiny":
            settings = (*settings[:-2], "+training.optimizer.eps=1e-3", "training.steps=8")
        assert finish(start(results, (*settings, *extra))).count(": done") == 1
        runs.append(RunFolder(next(results.rglob("config.yaml")).parent))
    one, two = (list(read_metrics(folder.metrics)) for folder in runs)
    for x, y in zip(one, two, strict=True):
        for key in ("reward/mean", "eval/pass@1", "loss/value", "grad/norm"):
            if x.get(key) is not None:
                assert y[key] == pytest.approx(x[key], rel=1e-3, abs=1e-5), key


def test_an_advantage_from_outside_is_a_function_or_an_object():
    rewards, group = torch.tensor([0.0, 1.0, 0.5]).double(), torch.tensor([4, 4, -1])
    length = torch.tensor([1, 2, 1])
    worst = token_level(build({"_target_": "toys.advantages.above_worst"}))
    assert worst(rewards, group, length, {}).tolist() == [0, 1, 1, 0]
    discounted = token_level(build({"_target_": "toys.advantages.Discounted", "gamma": 0.5}))
    assert discounted(rewards, group, length, {}).tolist() == [-1, 0.5, 1, 0]


# The page that describes it.

PAGE = (ROOT / "docs" / "adding.md").read_text()
BLOCK = re.compile(r"`(tests/toys/[\w/.]+)`[^`]*\n\n?```(?:python|yaml)\n(.*?)```", re.DOTALL)


def test_the_page_shows_the_files_as_they_are():
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == PAGE.count("```python") + PAGE.count("```yaml")
    assert len(blocks) >= 7
    for name, block in blocks:
        assert block in (ROOT / name).read_text(), f"{name}: {block}"


def test_every_path_that_the_page_names_exists():
    for name in re.findall(r"`((?:tests|conf|docs|src)/[\w/.]+)`", PAGE):
        assert (ROOT / name).exists(), name
