"""Two versions of the code give the same numbers, bit for bit, or this says where they do not.

``python tests/reference/compare.py OTHER [THIS] [--only NAME]`` runs the jobs of ``cases.py`` by
the entry points of both checkouts, with the Python that runs this, and compares what the runs left
behind: metrics but times, allocations, evaluations, weights, and the state to resume from. Both
must be run on one machine, since bits differ between processors. The exit status is 1 if anything
differs.
"""

import argparse
import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[0] = str(HERE.parent)  # `reference` is found from here as it is by pytest

from reference.cases import JOBS, Job  # noqa: E402

SHOWN = 5  # differences of one job
# What of a checkpoint must be equal; other keys may come and go, and are noted.
STRICT = ("policy", "optimizer", "success", "done", "totals")


def timeless(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of metrics without what depends on the clock."""
    return {
        key: value
        for key, value in row.items()
        if not key.startswith("time/") and key != "groups/mixed_per_second"
    }


def differences(a: Any, b: Any, where: str = "") -> Iterator[str]:
    """Where two values differ in a single bit; NaN equals NaN."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        yield from _tensors(a, b, where)
    elif isinstance(a, pd.DataFrame) and isinstance(b, pd.DataFrame):
        columns = [{name: frame[name].to_numpy() for name in frame} for frame in (a, b)]
        yield from differences(*columns, where)
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        yield from _arrays(a, b, where)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in [*a, *(key for key in b if key not in a)]:
            place = f"{where}/{key}" if where else str(key)
            if key in a and key in b:
                yield from differences(a[key], b[key], place)
            else:
                yield f"{place}: only in the {'first' if key in a else 'second'}"
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            yield f"{where}: {len(a)} and {len(b)} items"
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            yield from differences(x, y, f"{where}[{i}]")
    elif not _equal(a, b):
        yield f"{where}: {a!r} and {b!r}"


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a.hex() == b.hex()
    return type(a) is type(b) and bool(a == b)


def _tensors(a: torch.Tensor, b: torch.Tensor, where: str) -> Iterator[str]:
    if a.dtype != b.dtype or a.shape != b.shape:
        yield f"{where}: {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        return
    bits = [x.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for x in (a, b)]
    if not torch.equal(*bits):
        apart = (a.double() - b.double()).abs().max()
        yield f"{where}: tensors differ by up to {float(apart):.3g}"


def _arrays(a: np.ndarray, b: np.ndarray, where: str) -> Iterator[str]:
    if a.dtype != b.dtype or a.shape != b.shape:
        yield f"{where}: {a.dtype} {a.shape} and {b.dtype} {b.shape}"
        return
    apart = [i for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True))
             if not _equal(x, y)]  # fmt: skip
    if apart:
        i = apart[0]
        yield f"{where}[{i}]: {a[i]!r} and {b[i]!r} ({len(apart)} of {len(a)} differ)"


def run_folders(results: Path) -> dict[str, Path]:
    """The runs below ``results``, whatever their folders are called: 'base' and 'run'."""
    found = {}
    for file in sorted(results.rglob("metrics.jsonl")):
        kind = "base" if "base" in file.relative_to(results).parts else "run"
        if kind in found:
            raise SystemExit(f"{results} holds two runs: {found[kind]} and {file.parent}")
        found[kind] = file.parent
    return found


def record(folder: Path) -> dict[str, Any]:
    """All numbers that a run leaves behind but times: metrics, tables and checkpoints."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    parts = sorted(
        (pd.read_parquet(file) for file in folder.glob("allocation/*.parquet")),
        key=lambda frame: frame["step"].iloc[0],
    )
    tables = {
        str(file.relative_to(folder)): pd.read_parquet(file)
        for file in sorted(folder.rglob("*.parquet"))
        if file.parent.name != "allocation"
    }
    checkpoints = {
        file.name: torch.load(file, map_location="cpu", weights_only=True)
        for file in sorted(folder.glob("checkpoints/*.pt"))
    }
    return {
        "metrics": [timeless(json.loads(line)) for line in lines],
        "allocation": pd.concat(parts, ignore_index=True) if parts else None,
        **tables,
        "checkpoints": checkpoints,
    }


def compare_records(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The differences between two runs, and what of their checkpoints is only noted."""
    tables = [{key: value for key, value in x.items() if key != "checkpoints"} for x in (a, b)]
    found, notes = list(differences(*tables)), []
    states = a["checkpoints"], b["checkpoints"]
    for name in sorted({*states[0], *states[1]}):
        if not all(name in state for state in states):
            found.append(f"{name}: only in the {'first' if name in states[0] else 'second'}")
            continue
        x, y = (dict(state[name]) for state in states)
        for key in STRICT:
            held = [_find(state, key) for state in (x, y)]
            if all(value is None for value in held):
                continue
            if any(value is None for value in held):
                found.append(
                    f"{name}/{key}: only in the {'first' if held[1] is None else 'second'}"
                )
            elif key == "totals":
                common = [k for k in held[0] if k in held[1]]
                found += differences(*({k: h[k] for k in common} for h in held), f"{name}/{key}")
                notes += _keys(*held, f"{name}/{key}")
            else:
                found += differences(*held, f"{name}/{key}")
        notes += _keys(x, y, name)
        rest = [k for k in x if k in y and k not in STRICT]
        notes += differences(*({k: s[k] for k in rest} for s in (x, y)), name)
    return found, notes


def _find(state: Any, key: str) -> Any:
    """What a checkpoint holds as ``key``, on whatever level of its dicts."""
    if not isinstance(state, Mapping):
        return None
    if key in state:
        return state[key]
    return next((v for v in (_find(part, key) for part in state.values()) if v is not None), None)


def _keys(a: Mapping[str, Any], b: Mapping[str, Any], where: str) -> list[str]:
    apart = {"first": [k for k in a if k not in b], "second": [k for k in b if k not in a]}
    return [f"{where}: {names} only in the {which}" for which, names in apart.items() if names]


def run_jobs(checkout: Path, jobs: Sequence[Job], results: Path) -> dict[str, str]:
    """Runs the jobs by the code of ``checkout``; the error of each, '' if there was none."""
    errors: dict[str, str] = {}
    together = [job for job in jobs if not job.alone]
    for part in (together, *([job] for job in jobs if job.alone)):
        if part:
            errors |= _process(checkout, part, results, len(errors), len(jobs))
    return errors


def _process(
    checkout: Path, jobs: Sequence[Job], results: Path, done: int, of: int
) -> dict[str, str]:
    """Runs jobs in one process."""
    asked = [dataclasses.asdict(job) | {"needs": sorted(job.needs())} for job in jobs]
    file = results / f"{jobs[0].name.replace('/', '-')}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"results": str(results), "jobs": asked}))
    environment = os.environ | {
        "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1", "WANDB_MODE": "offline",
        "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    errors = {job.name: "did not run" for job in jobs}
    with (
        open(file.with_suffix(".log"), "w") as log,
        subprocess.Popen(
            [sys.executable, str(HERE / "driver.py"), str(file)], cwd=checkout, env=environment,
            stdout=subprocess.PIPE, stderr=log, text=True,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            ended = json.loads(line)
            errors[ended["name"]] = ended["error"]
            done += 1
            print(
                f"  {results.name} {done}/{of} {ended['name']} {ended['seconds']:.1f} s"
                + (f": {ended['error']}" if ended["error"] else ""),
                flush=True,
            )
    if process.returncode:
        print((file.with_suffix(".log")).read_text()[-2000:], flush=True)
    return errors


def chosen(only: Sequence[str]) -> tuple[list[Job], list[Job]]:
    """The jobs to compare, and those to run: the same and what they read.

    A name is that of a job, of all jobs below it (``maze``), or a pattern (``*/sera*``).
    """
    shown = [
        job for job in JOBS
        if not only or any(fnmatch(job.name, o) or fnmatch(job.name, f"{o}/*") for o in only)
    ]  # fmt: skip
    if not shown:
        raise SystemExit(f"No job is called {' or '.join(only)}: {', '.join(j.name for j in JOBS)}")
    names = {job.name for job in shown}
    for job in reversed(JOBS):
        if job.name in names:
            names |= job.needs()
    return shown, [job for job in JOBS if job.name in names]


def compare_job(job: Job, roots: Sequence[Path]) -> tuple[list[str], list[str]]:
    """The differences between the runs of one job in two folders of results, and notes."""
    folders = [run_folders(root / job.name) for root in roots]
    if folders[0].keys() != folders[1].keys() or not folders[0]:
        return [f"runs: {sorted(folders[0])} and {sorted(folders[1])}"], []
    found, notes = [], []
    for kind in folders[0]:
        apart, noted = compare_records(*(record(folder[kind]) for folder in folders))
        found += [f"{kind}/{line}" for line in apart]
        notes += [f"{kind}/{line}" for line in noted]
    return found, notes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("first", type=Path, help="the folder of a checkout")
    parser.add_argument(
        "second", type=Path, nargs="?", default=HERE.parents[1], help="another; this one if not set"
    )
    parser.add_argument("--only", action="append", default=[], help="a job, a folder or a pattern")
    parser.add_argument("--results", type=Path, help="keep the runs here; else in a folder of /tmp")
    asked = parser.parse_args()
    shown, jobs = chosen(asked.only)
    if asked.results and asked.results.exists() and any(asked.results.iterdir()):
        parser.error(f"{asked.results} is not empty: name a new folder, so that all runs are new.")
    with tempfile.TemporaryDirectory() as temporary:
        results = (asked.results or Path(temporary)).resolve()
        roots = [results / "first", results / "second"]
        for root, checkout in zip(roots, (asked.first, asked.second), strict=True):
            print(f"{root.name}: {checkout.resolve()}", flush=True)
            errors = run_jobs(checkout.resolve(), jobs, root)
            (root / "errors.json").write_text(json.dumps(errors))
        return report(shown, roots)


def report(jobs: Sequence[Job], roots: Sequence[Path]) -> int:
    """Prints a line a job; 1 if any differs or did not end well."""
    errors = [json.loads((root / "errors.json").read_text()) for root in roots]
    bad, noted = 0, {}
    for job in jobs:
        failed = [
            f"{root.name} failed: {error[job.name]}"
            for root, error in zip(roots, errors, strict=True)
            if error[job.name]
        ]
        found, notes = (failed, []) if failed else compare_job(job, roots)
        noted |= dict.fromkeys(note.split("/", 1)[1] for note in notes)
        bad += bool(found)
        print(f"{job.name}: {'different' if found else 'same'}")
        print(*(f"    {line}\n" for line in found[:SHOWN]), sep="", end="")
        if len(found) > SHOWN:
            print(f"    and {len(found) - SHOWN} more")
    for note in noted:
        print(f"note: {note}")
    print(f"{len(jobs) - bad} of {len(jobs)} jobs are the same")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
