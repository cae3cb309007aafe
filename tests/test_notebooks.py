"""The notebooks run from top to bottom, on run folders and on a stored table alike."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from reporting.image_runs import write_gradients
from reporting.image_runs import write_run as write_image_run

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
TABLE2 = NOTEBOOKS / "table2_imagenet.ipynb"
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


def write_image_runs(root: Path) -> None:
    for method, p in (("ce", 0.5), ("maxrl", 0.125), ("sera", 0.25)):
        folder = write_image_run(root, method, p=[p, p])
        if method == "ce":
            cosines = {("maxrl", 16): (0.2, 0.4), ("sera", 16): (0.6, 0.8)}
            write_gradients(folder.root, cosines, dict.fromkeys(cosines, (16, 16)))


TABLE2_CHECKS = """
assert shown.loc[("–", "ce", "", ""), 1] == 50, shown
assert shown.loc[("16", "sera", "", ""), 2] == 43.75, shown
assert set(compared["difference"]) == {"sera − maxrl", "maxrl − ce", "sera − ce"}
gap = compared[(compared["difference"] == "sera − ce") & (compared["k"] == 1)]
assert list(gap["points"]) == [-25]
assert abs(cosines.loc[(16, "sera"), "cosine_sample"] - 0.7) < 1e-9
"""


@pytest.mark.slow
def test_table2_from_run_folders(tmp_path: Path) -> None:
    write_image_runs(tmp_path)
    checks = "assert len(training.axes) == 4 and len(fidelity.axes) == 2\n"
    execute(TABLE2, {"RESULTS": str(tmp_path)}, TABLE2_CHECKS + checks)


@pytest.mark.slow
def test_table2_from_what_is_stored(tmp_path: Path) -> None:
    from waterline.reporting import gradient_table, load_runs, pass_at_k_table
    from waterline.reporting.figures import figure2, save

    write_image_runs(tmp_path / "runs")
    runs = load_runs(tmp_path / "runs", "imagenet-laptop")
    stored = tmp_path / "stored" / "imagenet-laptop"
    stored.mkdir(parents=True)
    table = pass_at_k_table(runs, [1, 2, 128], reference="ce", base=False)
    table.tidy().to_csv(stored / "table2.csv", index=False)
    gradient_table(runs).tidy().to_csv(stored / "gradients.csv", index=False)
    save(figure2(runs), stored / "figure2")
    checks = "assert len(training.axes) == 1 and fidelity is None\n"
    execute(TABLE2, {"RESULTS": str(tmp_path / "stored")}, TABLE2_CHECKS + checks)


@pytest.mark.slow
def test_table2_with_nothing_to_read_says_so(tmp_path: Path) -> None:
    checks = """
assert shown is None and compared is None and training is None and fidelity is None
assert "holds no run" in notes[0] and notes[1].startswith("Nothing to show")
"""
    execute(TABLE2, {"RESULTS": str(tmp_path)}, checks)


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_kept_without_outputs(notebook: Path) -> None:
    for cell in cells(notebook):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], cell["id"]
            assert cell["execution_count"] is None, cell["id"]
