"""Tables and figures by number, written below the experiment that they are about."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from waterline.reporting.figures import save
from waterline.reporting.readers import Run, finished, load_runs
from waterline.reporting.render import markdown, print_table
from waterline.reporting.tables import PassAtKTable, pass_at_k_table
from waterline.runs import BadInput, atomic_write, provenance


def report(config: DictConfig, console: Console) -> list[Path]:
    """Make the table or the figure that ``config`` (conf/report.yaml) asks for.

    Returns the written files: ``table<k>.md``, ``.csv`` and ``.provenance.json``, or
    ``figure<k>.png`` and ``.pdf``, in ``<root>/<experiment>/``.

    Raises:
        BadInput: for a table or figure that does not exist, or when there is nothing to show.
    """
    if (config.table is None) == (config.figure is None):
        raise BadInput(f"Ask for one table or one figure: {_existing(config)}.")
    kind = "table" if config.figure is None else "figure"
    entries = config[f"{kind}s"]
    if config[kind] == "all":
        return [path for number in entries for path in _make(config, kind, number, console)]
    if config[kind] not in entries:
        raise BadInput(f"There is no {kind} {config[kind]}: choose from {_existing(config)}.")
    return _make(config, kind, config[kind], console)


def _make(config: DictConfig, kind: str, number: int, console: Console) -> list[Path]:
    entry = config[f"{kind}s"][number]
    experiment = config.folder or f"{entry.task}-{config.scale}"
    stem = Path(config.root) / experiment / f"{kind}{number}"
    runs = load_runs(config.root, experiment) if entry.get("reads_runs", True) else []
    if config.settings is not None:
        kept = [config.settings] if isinstance(config.settings, str) else config.settings
        runs = [run for run in runs if run.method == "base" or run.settings in kept]
    written = (_table if kind == "table" else _figure)(config, entry, runs, stem, console)
    console.print(f"Written: {', '.join(map(str, written))}", highlight=False, soft_wrap=True)
    return written


def _table(
    config: DictConfig, entry: DictConfig, runs: list[Run], stem: Path, console: Console
) -> list[Path]:
    table = pass_at_k_table(
        runs,
        list(config.ks or entry.ks),
        config.split,
        config.estimator,
        baseline=config.baseline,
        expected=[(normalisation, method) for normalisation, method in entry.rows],
    )
    paper = None
    if config.scale == "paper" and entry.get("paper"):
        paper = pd.read_csv(Path(config.paper) / entry.paper)
    print_table(console, table, entry.title, paper)
    written = [stem.with_suffix(s) for s in (".md", ".csv", ".provenance.json")]
    atomic_write(written[0], markdown(table, entry.title, paper))
    tidy = table.tidy()
    tidy.insert(0, "experiment", stem.parent.name)
    tidy.insert(0, "table", stem.name.removeprefix("table"))
    atomic_write(written[1], tidy.to_csv(index=False, float_format="%.6g"))
    record = _provenance(table, Path(config.root))
    atomic_write(written[2], json.dumps(record, indent=2) + "\n")
    return written


def _figure(
    config: DictConfig, entry: DictConfig, runs: list[Run], stem: Path, console: Console
) -> list[Path]:
    draw = OmegaConf.to_container(entry.draw, resolve=True)
    if not entry.get("reads_runs", True):
        return save(instantiate(draw), stem)
    done, notes = finished(runs)
    for note in notes:
        console.print(f"• {note}", highlight=False, markup=False)
    return save(instantiate(draw, done), stem)


def _provenance(table: PassAtKTable, root: Path) -> dict[str, Any]:
    """Return what made the table: this command, and each run with its own provenance."""
    runs = {run.path: run for row in table.rows for run in row.runs}
    return {
        "report": provenance(),
        "runs": {
            path.relative_to(root).as_posix(): {
                "seconds": _seconds(run),
                "status": run.document("status"),
                "provenance": run.document("provenance"),
            }
            for path, run in sorted(runs.items())
        },
    }


def _seconds(run: Run) -> float | None:
    return float(run.metrics["time/step"].sum()) if "time/step" in run.metrics else None


def _existing(config: Mapping[Any, Any]) -> str:
    tables, figures = (", ".join(map(str, config[name])) for name in ("tables", "figures"))
    return f"table={tables} and figure={figures}"
