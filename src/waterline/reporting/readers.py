"""Reading run folders; nothing here knows how deep a run folder lies below its experiment."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import OmegaConf

from waterline.runs import BadInput, RunFolder, read_metrics

COUNT_COLUMNS = ["step", "split", "prompt", "n", "c"]


@dataclass(frozen=True)
class Run:
    """One run folder; its tables are read when first asked for.

    ``status`` is 'done' only for a finished run; a folder without ``status.json`` reads 'unknown'.
    """

    path: Path
    experiment: str
    method: str
    seed: int
    status: str
    config: dict[str, Any] = field(repr=False)

    @property
    def settings(self) -> str:
        """The folder that names the settings, e.g. 'n0-16_nmax-64'."""
        return self.path.parent.name

    @property
    def normalisation(self) -> str:
        """The loss normalisation; '' for a run without a policy loss, such as the base model."""
        return "" if self.method == "base" else str(self.setting("losses.normalisation", ""))

    def setting(self, key: str, default: Any = None) -> Any:
        """Return one value of the run's configuration by its dotted key."""
        value: Any = self.config
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                return default
            value = value[part]
        return value

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """``metrics.jsonl``: one row a step, columns as in ``waterline.reporting.metrics``."""
        rows = read_metrics(self.path / "metrics.jsonl")
        return pd.DataFrame(rows) if rows else pd.DataFrame({"step": pd.Series(dtype="int64")})

    @cached_property
    def allocation(self) -> pd.DataFrame:
        """All ``allocation/*.parquet``: step, prompt, p_hat, n; in order of the steps."""
        files = sorted((self.path / "allocation").glob("*.parquet"))
        if not files:
            return pd.DataFrame(columns=["step", "prompt", "p_hat", "n"])
        return pd.concat(map(pd.read_parquet, files)).sort_values("step", kind="stable")

    @cached_property
    def counts(self) -> pd.DataFrame:
        """``eval/counts.parquet``: step, split, prompt, n, c; empty before any evaluation.

        Raises:
            BadInput: when a column lacks, a question appears twice, or c is not within 0..n.
        """
        file = self.path / "eval" / "counts.parquet"
        if not file.exists():
            return pd.DataFrame(columns=COUNT_COLUMNS)
        counts = pd.read_parquet(file)
        lacking = [name for name in COUNT_COLUMNS if name not in counts]
        if lacking:
            raise BadInput(f"{file} lacks {', '.join(lacking)}: evaluate this run again.")
        if counts.duplicated(["step", "split", "prompt"]).any():
            raise BadInput(f"{file} holds a question twice for one step: evaluate this run again.")
        if ((counts.c < 0) | (counts.c > counts.n)).any():
            raise BadInput(f"{file} holds counts c outside 0..n: evaluate this run again.")
        return counts

    def answers(self, split: str, step: int | None = None) -> pd.DataFrame:
        """Return n and c by prompt at ``step`` (default: the last evaluated one after step 0)."""
        rows = self.counts[self.counts.split == split]
        if step is None:
            trained = rows[rows.step > 0]
            step = int(trained.step.max()) if len(trained) else -1
        return rows[rows.step == step].set_index("prompt")[["n", "c"]].sort_index()

    def last_step(self, split: str) -> int | None:
        """Return the last evaluated step after step 0, or None where there is none."""
        steps = self.counts.step[(self.counts.split == split) & (self.counts.step > 0)]
        return int(steps.max()) if len(steps) else None

    def document(self, name: str) -> dict[str, Any]:
        """Return one of the run's JSON files ('status', 'provenance'); {} where it lacks."""
        return _json(self.path / f"{name}.json")


def load_runs(root: str | Path, experiment: str) -> list[Run]:
    """Return every run below ``root/experiment``, finished or not, in order of the folders.

    Raises:
        BadInput: when there is no such folder or no run in it.
    """
    folder = Path(root) / experiment
    found = {
        file.parents[depth]
        for pattern, depth in (("**/config.yaml", 0), ("**/eval/counts.parquet", 1))
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


def _json(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    loaded = json.loads(file.read_text(encoding="utf-8"))
    return loaded if isinstance(loaded, dict) else {}
