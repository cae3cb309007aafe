"""A table in its three files."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from waterline.reporting.run import Run
from waterline.reporting.tables.render import markdown
from waterline.reporting.tables.table import Table
from waterline.runs import atomic_write, provenance


def write_table(
    table: Table, title: str, stem: Path, root: Path, paper: pd.DataFrame | None = None
) -> list[Path]:
    """Write ``stem.md``, ``.csv`` and ``.provenance.json`` and return their paths.

    ``root`` is the folder from which the provenance names the runs.
    """
    written = [stem.with_suffix(s) for s in (".md", ".csv", ".provenance.json")]
    atomic_write(written[0], markdown(table, title, paper))
    tidy = table.tidy()
    tidy.insert(0, "experiment", stem.parent.name)
    tidy.insert(0, "table", stem.name.removeprefix("table"))
    atomic_write(written[1], tidy.to_csv(index=False, float_format="%.6g"))
    atomic_write(written[2], json.dumps(_provenance(table.runs, root), indent=2) + "\n")
    return written


def _provenance(runs: Iterable[Run], root: Path) -> dict[str, Any]:
    """Return what made the table: this command, and each run with its own provenance."""
    by_path = {run.path: run for run in runs}
    return {
        "report": provenance(),
        "runs": {
            path.relative_to(root).as_posix(): {
                "seconds": _seconds(run),
                "status": run.document("status"),
                "provenance": run.document("provenance"),
            }
            for path, run in sorted(by_path.items())
        },
    }


def _seconds(run: Run) -> float | None:
    return float(run.metrics["time/step"].sum()) if "time/step" in run.metrics else None
