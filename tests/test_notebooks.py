"""The notebooks run from top to bottom, on run folders and on a stored table alike."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
TABLE4 = NOTEBOOKS / "table4_maze.ipynb"
CHECKS = """
assert set(tidy["method"]) == {"base", "maxrl", "sera"}
assert list(panels) == ["token-mean"]
assert [len(panel.containers) for panel in panels.values()] == [3]
assert sorted(tidy["k"].unique()) == [1, 2, 4, 8]
at_one = tidy[tidy["k"] == 1].set_index("method")["value"]
assert abs(at_one["sera"] - 50.0) < 1e-9 and abs(at_one["maxrl"] - 37.5) < 1e-9, at_one
"""


def cells(notebook: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return found


def execute(notebook: Path, parameters: dict[str, Any], checks: str) -> None:
    """Run the code cells with the parameters' values replaced, and then the checks.

    By Jupyter where it is installed, else as plain Python.
    """
    setting = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    sources = []
    for cell in cells(notebook):
        if cell["cell_type"] == "code":
            sources.append("".join(cell["source"]))
            if "parameters" in cell["metadata"].get("tags", []):
                sources.append(setting)
    assert setting in sources, f"{notebook.name} has no cell tagged parameters"
    sources.append(checks)
    if all(importlib.util.find_spec(name) for name in ("nbformat", "nbconvert", "ipykernel")):
        import nbformat
        from nbconvert.preprocessors import ExecutePreprocessor

        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
        ExecutePreprocessor(timeout=300).preprocess(book, {"metadata": {"path": str(NOTEBOOKS)}})
        return
    namespace: dict[str, Any] = {}
    for source in sources:
        exec(compile(source, notebook.name, "exec"), namespace)


def write_run(root: Path, method: str, successes: list[int], step: int) -> None:
    folder = root / "maze-laptop" / method / "seed-0"
    (folder / "eval").mkdir(parents=True)
    config = {
        "experiment": "maze-laptop", "method": method, "seed": 0,
        "allocation": {"n0": 16, "n_max": 64}, "losses": {"normalisation": "token-mean"},
    }  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    (folder / "status.json").write_text('{"state": "done"}\n')
    counts = {"step": step, "split": "test", "prompt": np.arange(2), "n": 8, "c": successes}
    pd.DataFrame(counts).to_parquet(folder / "eval" / "counts.parquet")


def write_runs(root: Path) -> None:
    write_run(root, "base", [1, 1], step=0)
    write_run(root, "maxrl", [2, 4], step=60)
    write_run(root, "sera", [4, 4], step=60)


@pytest.mark.slow
def test_table4_from_run_folders(tmp_path: Path) -> None:
    write_runs(tmp_path)
    execute(TABLE4, {"RESULTS": str(tmp_path), "KS": [1, 2, 4, 8]}, CHECKS)


@pytest.mark.slow
def test_table4_from_the_stored_table(tmp_path: Path) -> None:
    from waterline.reporting import load_runs, pass_at_k_table

    write_runs(tmp_path / "runs")
    tidy = pass_at_k_table(load_runs(tmp_path / "runs", "maze-laptop"), [1, 2, 4, 8]).tidy()
    stored = tmp_path / "stored" / "maze-laptop" / "table4.csv"
    stored.parent.mkdir(parents=True)
    tidy.to_csv(stored, index=False)
    execute(
        TABLE4, {"RESULTS": str(tmp_path / "stored")}, CHECKS + "assert 'table4.csv' in notes[0]\n"
    )


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_kept_without_outputs(notebook: Path) -> None:
    for cell in cells(notebook):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], cell["id"]
            assert cell["execution_count"] is None, cell["id"]
