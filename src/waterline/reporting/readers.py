"""Reading run folders; nothing here knows how deep a run folder lies below its experiment."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from waterline.reporting.run import Run
from waterline.reporting.run_tables import COUNTS, PROBABILITIES
from waterline.runs import BadInput, RunFolder


def load_runs(root: str | Path, experiment: str) -> list[Run]:
    """Return every run below ``root/experiment``, finished or not, in order of the folders.

    Raises:
        BadInput: when there is no such folder or no run in it.
    """
    folder = Path(root) / experiment
    found = {
        file.parents[depth]
        for pattern, depth in (
            ("**/config.yaml", 0),
            (f"**/{COUNTS.file}", 1),
            (f"**/{PROBABILITIES.file}", 1),
        )
        for file in folder.glob(pattern)
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
    }
    if not found:
        raise BadInput(
            f"{folder} holds no run: train one first, e.g. 'python experiments/train.py "
            f"experiment={experiment.replace('-', '/', 1)} method=sera seed=0'."
        )
    return [_run(path, folder, experiment) for path in sorted(found)]


def finished(runs: Iterable[Run]) -> tuple[list[Run], list[str]]:
    """Return the finished runs, and one sentence that names those left out (or none)."""
    runs = list(runs)
    # A base model's folder may hold nothing but its evaluation.
    done = [run for run in runs if run.status == "done" or _only_evaluated(run)]
    left = [f"{_short(run)} ({run.status})" for run in runs if run not in done]
    return done, [f"Left out, not finished: {', '.join(left)}."] if left else []


def _only_evaluated(run: Run) -> bool:
    return run.method == "base" and run.status == "unknown" and len(run.counts) > 0


def _short(run: Run) -> str:
    parts = run.path.parts
    return "/".join(parts[len(parts) - parts[::-1].index(run.experiment) :])


def _run(path: Path, folder: Path, experiment: str) -> Run:
    file = path / "config.yaml"
    config: Any = OmegaConf.to_container(OmegaConf.load(file)) if file.exists() else {}
    config = {str(key): value for key, value in config.items()} if isinstance(config, dict) else {}
    name = path.relative_to(folder).parts[0]
    method = config.get("method")
    seed = config.get("seed")
    if not isinstance(seed, int):
        match = re.search(r"(\d+)$", path.name)
        if match is None:
            raise BadInput(f"{path} names no seed: add 'seed' to its config.yaml.")
        seed = int(match[1])
    return Run(
        path=path,
        experiment=experiment,
        method=method if isinstance(method, str) and name != "base" else name,
        seed=seed,
        status=str(RunFolder(path).state() or "unknown"),
        config=config,
    )
