"""What is printed never ends the work: readers that leave, full disks, narrow encodings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import waterline

CODE = """
import logging, sys
from rich.console import Console
from waterline.runs.output import outlive_readers
outlive_readers()
logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
for i in range(20000):
    print("line", i, "− κ ≥")
    logging.info("logged − κ")
Console().print("[bold]table −[/bold]")
open("whole.txt", "w").write("written")
"""


def run(command, folder, **environment):
    env = os.environ | {"PYTHONPATH": str(Path(waterline.__file__).parents[1])} | environment
    (folder / "code.py").write_text(CODE, encoding="utf-8")
    line = f"set -o pipefail; {sys.executable} code.py {command}"
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=env, capture_output=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        ("| head -1", {}),
        ("| true", {}),
        (">&-", {}),
        (">&- 2>&-", {}),
        ("> /dev/full", {}),
        ("| tail -1", {"PYTHONIOENCODING": "ascii"}),
        ("| tail -1", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        ("| tail -1", {"PYTHONIOENCODING": "latin-1"}),
    ],
)
def test_the_work_is_finished_with_status_0(tmp_path, command, environment):
    found = run(command, tmp_path, **environment)
    assert (tmp_path / "whole.txt").read_text() == "written"
    assert found.returncode == 0
    assert found.stderr == b""
    if "tail" in command:
        assert found.stdout.strip() == b"table ?"


def test_letters_that_the_terminal_has_are_kept(tmp_path):
    found = run("| tail -1", tmp_path, PYTHONIOENCODING="utf-8")
    assert found.stdout.decode().strip() == "table −"
