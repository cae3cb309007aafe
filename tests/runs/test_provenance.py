import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hydra.core.hydra_config import HydraConfig

import waterline
from waterline.runs import provenance

SOURCE = Path(waterline.__file__).parent
PRINT = "import json; from waterline.runs import provenance; print(json.dumps(provenance()))"


def ask(source, folder, **environment):
    answer = subprocess.run(
        [sys.executable, "-c", PRINT],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join([str(source), *sys.path[1:]]), **environment},
    )
    return json.loads(answer.stdout)


def test_it_says_what_ran_where():
    record = json.loads(json.dumps(provenance()))
    assert record["versions"]["python"] == sys.version.split()[0]
    assert "numpy" in record["versions"]
    assert record["hardware"]["cores"] >= 1
    assert record["command"].startswith("python ")


def test_the_command_names_no_folder_above_the_current_one(monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(Path.cwd() / "experiments/train.py"), "seed=0", "a=b c"])
    assert provenance()["command"] == "python experiments/train.py seed=0 'a=b c'"
    monkeypatch.setattr(sys, "argv", ["/somewhere/else/train.py"])
    assert provenance()["command"] == "python train.py"


SUBMIT = ["/opt/site-packages/submitit/core/_submit.py", "/home/someone/results/.jobs/0"]


@pytest.mark.parametrize(
    ("given", "argv", "command"),
    [
        (None, SUBMIT, "python experiments/train.py method=sera 'task.path=a b' seed=0"),
        ("python experiments/train.py -m seed=0,1", SUBMIT, None),
        ("python experiments/reproduce.py table=4", ["/x/experiments/train.py", "seed=0"], None),
        (None, ["/x/ipykernel_launcher.py", "-f", "/home/someone/kernel-1.json"], "a notebook"),
        (None, ["experiments/train.py", "seed=0"], "python experiments/train.py seed=0"),
        (None, ["/x/bin/pytest", "-q", "tests"], "python pytest -q tests"),
        (None, ["/x/lib/pytest/__main__.py", "-q"], "python -m pytest -q"),
        (None, ["-c"], "python -c"),
    ],
)
def test_the_command_is_the_users_own(monkeypatch, given, argv, command):
    monkeypatch.setattr(sys, "argv", argv)
    if given:
        monkeypatch.setenv("WATERLINE_COMMAND", given)
    else:
        monkeypatch.delenv("WATERLINE_COMMAND", raising=False)
    job = SimpleNamespace(
        job=SimpleNamespace(config_name="train"),
        overrides=SimpleNamespace(task=["method=sera", "task.path=a b", "seed=0"]),
    )
    monkeypatch.setattr(HydraConfig, "initialized", lambda: True)
    monkeypatch.setattr(HydraConfig, "get", lambda: job)
    assert provenance()["command"] == (command or given)
    assert "someone" not in provenance()["command"]


@pytest.fixture
def checkout(tmp_path):
    """A repository of its own that tracks a copy of the room."""
    shutil.copytree(SOURCE / "runs", tmp_path / "src" / "waterline" / "runs")
    (tmp_path / "src" / "waterline" / "__init__.py").write_text("")
    return tmp_path


def git(folder, *arguments):
    who = ["-c", "user.name=test", "-c", "user.email=test"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_git_commit_and_dirty_flag(checkout, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    path = {"PATH": "/usr/bin:/bin:/usr/local/bin"}
    assert ask(checkout / "src", elsewhere, **path)["git"] is None
    git(checkout, "init")
    # Files that lie in a repository without being tracked are not that repository's.
    assert ask(checkout / "src", elsewhere, **path)["git"] is None
    git(checkout, "add", "src/waterline/__init__.py", "src/waterline/runs/*.py")
    git(checkout, "commit", "-m", "first")
    clean = ask(checkout / "src", elsewhere, **path)["git"]
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    (checkout / "src" / "waterline" / "__init__.py").write_text("changed = True\n")
    assert ask(checkout / "src", elsewhere, **path)["git"] == {**clean, "dirty": True}


def test_without_git_the_record_is_made_all_the_same(checkout, tmp_path_factory):
    assert ask(checkout / "src", tmp_path_factory.mktemp("elsewhere"), PATH="")["git"] is None
