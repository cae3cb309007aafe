"""Two versions of the code give the same numbers, bit for bit, or this says where they do not.

``python tests/reference/compare.py OTHER [THIS] [--only NAME]`` runs the jobs of ``cases.py`` by
the entry points of both checkouts, with the Python that runs this, and compares what the runs left
behind: metrics but times, allocations, evaluations, weights, and the state to resume from. Both run
on one machine, since bits differ between processors. The exit status is 1 if anything differs.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[0] = str(HERE.parent)  # `reference` is found from here as it is by pytest

from reference.cases import JOBS, Job  # noqa: E402
from reference.records import compare_records, record, run_folders  # noqa: E402

SHOWN = 5  # differences of one job
NOTES = 20


def chosen(only: Sequence[str]) -> tuple[list[Job], list[Job]]:
    """The jobs to compare, and those to run: the same and what they read.

    A name is that of a job, of all jobs below it (``maze``), or a pattern (``*/sera*``).
    """
    shown = [
        job for job in JOBS
        if not only or any(fnmatch(job.name, o) or fnmatch(job.name, f"{o}/*") for o in only)
    ]  # fmt: skip
    if not shown:
        known = ", ".join(job.name for job in JOBS)
        raise SystemExit(f"No job is called {' or '.join(only)}: choose from {known}.")
    names = {job.name for job in shown}
    for job in reversed(JOBS):
        if job.name in names:
            names |= job.needs()
    return shown, [job for job in JOBS if job.name in names]


def run_jobs(checkout: Path, jobs: Sequence[Job], results: Path) -> Iterator[tuple[str, str]]:
    """Runs the jobs by the code of ``checkout``: the name and the error, if any, of each."""
    together = [job for job in jobs if not job.alone]
    for part in (together, *([job] for job in jobs if job.alone)):
        ended = set()
        for name, error in _process(checkout, part, results) if part else ():
            ended.add(name)
            yield name, error
        yield from ((job.name, "did not run") for job in part if job.name not in ended)


def _process(checkout: Path, jobs: Sequence[Job], results: Path) -> Iterator[tuple[str, str]]:
    """Runs jobs in one process; see ``driver.py``."""
    asked = [dataclasses.asdict(job) | {"needs": sorted(job.needs())} for job in jobs]
    file = results / f"{jobs[0].name.replace('/', '-')}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"results": str(results), "jobs": asked}))
    environment = os.environ | {
        "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1", "WANDB_MODE": "offline",
        "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
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
            yield ended["name"], ended["error"]
    if process.returncode:
        print(file.with_suffix(".log").read_text()[-2000:], file=sys.stderr, flush=True)


def run_first(checkout: Path, jobs: Sequence[Job], results: Path, keep: Path | None) -> Path:
    """The folder of the first checkout's runs, those of an earlier call if ``keep`` has them."""
    kept = keep and _kept(checkout, jobs, keep)
    if kept and kept.exists():
        print(f"first: {checkout}, as kept in {kept}", flush=True)
        return kept
    print(f"first: {checkout}", flush=True)
    errors = {}
    for name, error in run_jobs(checkout, jobs, results):
        errors[name] = error
        print(f"  {len(errors)}/{len(jobs)} {name} {error}".rstrip(), flush=True)
    (results / "errors.json").write_text(json.dumps(errors))
    if kept and not any(errors.values()):
        shutil.copytree(results, kept)
    return results


def _kept(checkout: Path, jobs: Sequence[Job], keep: Path) -> Path | None:
    """Where the runs of these jobs and this commit are kept; None if files were changed since."""

    def git(*command: str) -> str:
        return subprocess.run(
            ["git", *command], cwd=checkout, capture_output=True, text=True, check=True
        ).stdout.strip()

    if git("status", "--porcelain", "--", "src", "conf", "experiments"):
        return None
    read = [git("rev-parse", "HEAD"), str(jobs), sys.version, torch.__version__]
    return keep.resolve() / hashlib.sha256("\n".join(read).encode()).hexdigest()[:16]


def compare_job(name: str, roots: Sequence[Path]) -> tuple[list[str], list[str]]:
    """The differences between the runs of one job in two folders of results, and notes."""
    folders = [run_folders(root / name) for root in roots]
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
    parser.add_argument(
        "--keep", type=Path, help="a folder for the runs of the first checkout, for the next call"
    )
    asked = parser.parse_args()
    shown, jobs = chosen(asked.only)
    names = {job.name for job in shown}
    bad, notes = 0, {}
    with tempfile.TemporaryDirectory() as temporary:
        results = Path(temporary) / "second"
        first = run_first(asked.first.resolve(), jobs, Path(temporary) / "first", asked.keep)
        errors = json.loads((first / "errors.json").read_text())
        print(f"second: {asked.second.resolve()}", flush=True)
        for done, (name, error) in enumerate(run_jobs(asked.second.resolve(), jobs, results), 1):
            if name not in names:
                continue
            failed = {"first": errors[name], "second": error}
            found = [f"{which} failed: {why}" for which, why in failed.items() if why]
            if not found:
                found, noted = compare_job(name, (first, results))
                notes |= dict.fromkeys(noted)
            bad += bool(found)
            print(f"  {done}/{len(jobs)} {name}: {'different' if found else 'same'}")
            print(*(f"      {line}\n" for line in found[:SHOWN]), sep="", end="", flush=True)
            if len(found) > SHOWN:
                print(f"      and {len(found) - SHOWN} more")
    print(*(f"note: {note}\n" for note in list(notes)[:NOTES]), sep="", end="")
    print(f"{len(shown) - bad} of {len(shown)} jobs are the same.")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
