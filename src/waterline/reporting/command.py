"""Tables and figures by number, written below the experiment that they are about."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from waterline.reporting.figures import save
from waterline.reporting.render import print_notes, print_table, write_table
from waterline.reporting.runs import Run, finished, load_runs
from waterline.runs import BadInput, as_bad_input
from waterline.runs.targets import build


def report(config: DictConfig, console: Console) -> list[Path]:
    """Make the table or the figure that ``config`` (conf/report.yaml) asks for.

    Returns the written files: ``table<k>.md``, ``.csv`` and ``.provenance.json``, or
    ``figure<k>.png`` and ``.pdf``, in ``<root>/<experiment>/``. 'all' makes those whose runs are
    there and says why the others are left out.

    Raises:
        BadInput: for a table or figure that does not exist, or when there is nothing to show.
    """
    if (config.table is None) == (config.figure is None):
        raise BadInput(f"Ask for one table or one figure: {_existing(config)}.")
    kind = "table" if config.figure is None else "figure"
    if config[kind] == "all":
        return _all(config, kind, console)
    if config[kind] not in config[f"{kind}s"]:
        raise BadInput(f"There is no {kind} {config[kind]}: choose from {_existing(config)}.")
    return _make(config, kind, config[kind], console)


def _all(config: DictConfig, kind: str, console: Console) -> list[Path]:
    written: list[Path] = []
    for name in config[f"{kind}s"]:
        try:
            written += _make(config, kind, name, console)
        except BadInput as reason:
            print_notes(console, [f"No {kind} {name}: {reason}"])
    if not written:
        raise BadInput(f"No {kind} could be made: see the reasons above.")
    return written


def _make(config: DictConfig, kind: str, name: int | str, console: Console) -> list[Path]:
    entry = config[f"{kind}s"][name]
    experiment = config.folder or f"{entry.task}-{config.scale}"
    stem = Path(config.root) / experiment / (f"{kind}{name}" if isinstance(name, int) else name)
    if config.scale not in (scales := entry.get("scales", [config.scale])):
        raise BadInput(f"{kind.title()} {name} exists at scale={scales[0]} alone: add it.")
    runs = []
    if entry.get("reads_runs", True):
        runs = load_runs(config.root, experiment, lambda note: print_notes(console, [note]))
    if config.settings is not None:
        kept = [config.settings] if isinstance(config.settings, str) else config.settings
        runs = [run for run in runs if not run.samples or run.settings in kept]
    make = _table if kind == "table" else _figure
    if "data_sets" not in entry:
        written = make(config, entry, runs, stem, console)
    else:
        written = _by_data_set(config, entry, runs, stem, console)
    if written:
        console.print(f"Written: {', '.join(map(str, written))}", highlight=False, soft_wrap=True)
    return written


def _by_data_set(
    config: DictConfig, entry: DictConfig, runs: list[Run], stem: Path, console: Console
) -> list[Path]:
    """A table for each data set of mathematics that was evaluated."""
    written: list[Path] = []
    for name, theirs in entry.data_sets.items():
        own = copy.deepcopy(entry)
        OmegaConf.set_struct(own, False)
        own.title, own.rows_of = f"{entry.title}: {theirs}", theirs
        part = [replace(run, data_set=name) for run in runs]
        try:
            written += _table(config, own, part, stem.with_name(f"{stem.name}-{name}"), console)
        except BadInput as reason:
            print_notes(console, [f"{theirs}: {reason}"])
    if not written:
        raise BadInput("No table could be made: see the reasons above.")
    return written


def _table(
    config: DictConfig, entry: DictConfig, runs: list[Run], stem: Path, console: Console
) -> list[Path]:
    make: Any = OmegaConf.to_container(entry.make, resolve=True)
    if config.ks is not None:
        if "ks" not in make:
            raise BadInput(f"{entry.title} has no K: leave out ks=.")
        make["ks"] = [config.ks] if isinstance(config.ks, int) else list(config.ks)
    with as_bad_input():
        table = build(make)(runs)
    paper = None
    if config.scale == "paper" and entry.get("paper"):
        paper = pd.read_csv(Path(config.paper) / entry.paper)
        if entry.get("rows_of"):
            paper = paper[paper["dataset"] == entry.rows_of]
    try:  # first the files: what is printed may be cut off
        return write_table(table, entry.title, stem, Path(config.root), paper)
    finally:
        print_table(console, table, entry.title, paper)


def _figure(
    config: DictConfig, entry: DictConfig, runs: list[Run], stem: Path, console: Console
) -> list[Path]:
    settings: Any = OmegaConf.to_container(entry.draw, resolve=True)
    draw = build(settings)
    done, notes = finished(runs)
    print_notes(console, notes)
    with as_bad_input():
        figure = draw(done) if entry.get("reads_runs", True) else draw()
    return save(figure, stem)


def _existing(config: Mapping[Any, Any]) -> str:
    tables, figures = (", ".join(map(str, config[name])) for name in ("tables", "figures"))
    return f"table={tables} and figure={figures}"
