"""Runs jobs one after another in the environment of one checkout: the imports are paid once.

``python driver.py JOBS.json``, in the root of the checkout and with its ``src`` on PYTHONPATH. Each
job runs its entry point as the command line would. One line of JSON on the standard output says how
each ended. What a job and the processes that it starts print goes to ``output.txt`` in its folder.
"""

import contextlib
import json
import logging
import os
import runpy
import shutil
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path


def run_folder(results: Path) -> Path:
    """The run below ``results``; the supervised base only where there is no other."""
    found = sorted(file.parent for file in results.rglob("metrics.jsonl"))
    if not found:
        raise FileNotFoundError(f"{results} holds no run.")
    runs = [folder for folder in found if "base" not in folder.relative_to(results).parts]
    return (runs or found)[0]


def command(job: dict, results: Path) -> list[str]:
    """The arguments of a job, with the folders of earlier jobs below ``results`` put in."""
    own = results / job["name"]
    folders = {name: run_folder(results / name) for name in job["needs"]}
    if job["copy"]:
        ignored = shutil.ignore_patterns("output.txt")
        shutil.copytree(results / job["copy"], own, ignore=ignored, dirs_exist_ok=True)
        folders["run"] = run_folder(own)
    arguments = job["arguments"]
    for name, folder in folders.items():
        arguments = [argument.replace(f"{{{name}}}", str(folder)) for argument in arguments]
    if job["script"] == "train.py":
        arguments = [*arguments, f"paths.results={own}"]
    return [str(Path("experiments", job["script"]).resolve()), *arguments]


def run(job: dict, results: Path) -> str:
    """Runs one job and returns '' or the error that ended it."""
    try:
        sys.argv = command(job, results)
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return "" if end.code in (None, 0) else f"exit status {end.code}"
    except BaseException as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return ""


@contextlib.contextmanager
def output_to(path: Path) -> Iterator[None]:
    """Both standard streams go to a file, as file descriptors, which other processes inherit."""
    kept = os.dup(1), os.dup(2)
    with open(path, "w", buffering=1) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for stream, old in zip((1, 2), kept, strict=True):
                os.dup2(old, stream)
                os.close(old)


def main(file: str) -> None:
    asked = json.loads(Path(file).read_text())
    results = Path(asked["results"])
    import waterline

    if not Path(waterline.__file__).is_relative_to(Path.cwd()):
        raise SystemExit(f"{waterline.__file__} is not of the checkout {Path.cwd()}.")
    for job in asked["jobs"]:
        output = results / job["name"] / "output.txt"
        output.parent.mkdir(parents=True)
        logging.getLogger().handlers.clear()  # those of the job before
        with output_to(output):
            error = run(job, results)
        if error and (said := output.read_text().splitlines()):
            error += f": {said[-1]}"
        print(json.dumps({"name": job["name"], "error": error}), flush=True)


if __name__ == "__main__":
    sys.path.pop(0)  # this folder is no part of the checkout
    main(sys.argv[1])
