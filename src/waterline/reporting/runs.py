"""Run folders: which there are below an experiment, and what each of them holds."""

import json
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from pyarrow.lib import ArrowException

from waterline.reporting.kinds import BASE, Kind
from waterline.runs import BadInput, RunFolder, read_metrics
from waterline.runs.targets import locate
from waterline.tasks.mathematics.sources import is_of

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RunTable:
    """A parquet file of a run folder: no two rows share ``key``, and ``wrong`` holds for none.

    ``wrong`` is an expression of pandas over the columns; ``again`` says what makes the file anew.
    """

    file: str
    key: tuple[str, ...]
    values: tuple[str, ...]
    wrong: str
    again: str = "evaluate this run again"

    def read(self, run: Path) -> pd.DataFrame:
        """Return the table of the folder ``run``; an empty one where there is no file.

        Raises:
            BadInput: when a column is missing, a row appears twice, or a value cannot be.
        """
        file, columns = run / self.file, [*self.key, *self.values]
        if not file.exists():
            return pd.DataFrame(columns=columns)
        try:
            frame = pd.read_parquet(file)
        except (OSError, ArrowException) as error:
            raise BadInput(f"{file} cannot be read, it may be cut short: {self.again}.") from error
        if missing := [name for name in columns if name not in frame]:
            raise BadInput(f"{file} has no column {', '.join(missing)}: {self.again}.")
        if frame.duplicated(list(self.key)).any():
            raise BadInput(f"{file} has two rows for one {', '.join(self.key)}: {self.again}.")
        if len(frame.query(self.wrong)):
            raise BadInput(f"{file} has rows with {self.wrong}: {self.again}.")
        return frame


_QUESTION = ("step", "split", "prompt")
COUNTS = RunTable("eval/counts.parquet", _QUESTION, ("n", "c"), "c < 0 or c > n")
PROBABILITIES = RunTable(
    "eval/probabilities.parquet", _QUESTION, ("p", "top1"), "not (p >= 0 and p <= 1)"
)
_BATCH = ("checkpoint", "batch", "method", "n0")
_AGAIN = "measure this run's gradients again"
# A cosine may be NaN, since a gradient that is zero has no direction, and 1 up to rounding.
COSINES = RunTable(
    "gradients/cosines.parquet",
    (*_BATCH, "kind", "resample"),
    ("cosine",),
    "cosine < -1.000000001 or cosine > 1.000000001",
    _AGAIN,
)
FIDELITY = RunTable(
    "gradients/fidelity.parquet",
    (*_BATCH, "prompt"),
    ("p", "n", "kappa_before", "kappa_after", "active"),
    "not (kappa_before >= 0 and kappa_before <= 1 and kappa_after >= 0 and kappa_after <= 1)",
    _AGAIN,
)


@dataclass(frozen=True)
class Run:
    """One run folder; its tables are read when first asked for.

    ``name`` is the path below the experiment. ``status`` is 'done' only for a finished run; a
    folder without ``status.json`` reads 'unknown'. With ``data_set`` its counts are those of the
    questions of this data set of mathematics alone.
    """

    path: Path
    name: str
    method: str
    seed: int
    status: str
    config: dict[str, Any] = field(repr=False)
    data_set: str | None = None

    @property
    def settings(self) -> str:
        """The folder that names the settings, e.g. 'n0-16_nmax-64'."""
        return self.path.parent.name

    @property
    def exact(self) -> bool:
        """Whether the run was evaluated by exact probabilities: its responses are one label."""
        return (self.path / PROBABILITIES.file).exists()

    @property
    def normalisation(self) -> str:
        """The loss normalisation; '' where there is none: base model, one label."""
        none = self.method == BASE or self.exact
        return "" if none else str(self.setting("losses.normalisation", ""))

    @property
    def samples(self) -> bool:
        """Whether training samples responses, as all methods but cross-entropy do."""
        return self.method != BASE and self.said_by("allocation", "reads_budget") is not False

    @property
    def n0(self) -> int | None:
        """The rollouts per prompt; None for a method that samples nothing."""
        n0 = self.setting("allocation.n0")
        return int(n0) if self.samples and n0 is not None else None

    @property
    def estimates(self) -> str:
        """Whose success estimates the counts follow: 'given', 'pilot', '' for none."""
        return str(self.said_by("allocation", "estimates"))

    @property
    def p_hat(self) -> str:
        """Where these estimates come from, if they are not exact: 'pilot' or 'history'."""
        given = self.estimates == "given"
        source = str(self.said_by("success", "source")) if given else self.estimates
        return {"exact": "", UNKNOWN: "unknown estimate"}.get(source, source)

    @property
    def kind(self) -> Kind:
        """What names the row that this run belongs to."""
        return self.kind_if(self.exact)

    def kind_if(self, exact: bool) -> Kind:
        """Return ``kind``, also where no evaluation shows yet whether it is ``exact``."""
        if exact:
            return Kind("", self.n0, self.method, self.p_hat, self.settings)
        return Kind(self.normalisation, method=self.method, settings=self.settings)

    def setting(self, key: str, default: Any = None) -> Any:
        """Return one value of the run's configuration by its dotted key."""
        value: Any = self.config
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                return default
            value = value[part]
        return value

    def said_by(self, room: str, attribute: str) -> Any:
        """Return what the class of the run's piece says of itself.

        'unknown' where no class is named, it says nothing, or it no longer exists: an old run is
        still shown.
        """
        try:
            return getattr(locate(str(self.setting(f"{room}._target_"))), attribute, UNKNOWN)
        except BadInput:
            return UNKNOWN

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """``metrics.jsonl``: one row a step, columns as in ``waterline.runs.metrics``."""
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
        """``eval/counts.parquet``: step, split, prompt, n, c; empty before any evaluation."""
        counts = COUNTS.read(self.path)
        return counts if self.data_set is None else counts[is_of(self.data_set, counts["prompt"])]

    @cached_property
    def probabilities(self) -> pd.DataFrame:
        """``eval/probabilities.parquet``: step, split, prompt, p, top1; empty without the file."""
        return PROBABILITIES.read(self.path)

    @cached_property
    def _evaluations(self) -> dict[tuple[Any, Any], pd.DataFrame]:
        frame, columns = (self.probabilities, ["p"]) if self.exact else (self.counts, ["n", "c"])
        return {
            (split, step): rows.set_index("prompt")[columns].sort_index()
            for (split, step), rows in frame.groupby(["split", "step"])
        }

    def steps(self, split: str) -> list[int]:
        """Return the steps that were evaluated on ``split``."""
        return sorted(int(step) for name, step in self._evaluations if name == split)

    def answers(self, split: str, step: int | None = None) -> pd.DataFrame:
        """Return n and c, or p, by prompt at ``step`` (default: the last one after step 0).

        Empty where there is no such evaluation.
        """
        step = self.last_step(split) if step is None else step
        return self._evaluations.get((split, step), pd.DataFrame())

    def last_step(self, split: str) -> int | None:
        """Return the last evaluated step after step 0, or None where there is none."""
        return max((step for step in self.steps(split) if step > 0), default=None)

    def document(self, name: str) -> dict[str, Any]:
        """Return one of the run's JSON files ('status', 'provenance'); {} without the file."""
        try:
            loaded = json.loads((self.path / f"{name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return loaded if isinstance(loaded, dict) else {}

    def same_as(self, other: "Run") -> bool:
        """Whether ``other`` is a copy of this run: its seed, in one folder or with one identity."""
        if self.seed != other.seed or self.method != other.method:
            return False
        mine, its = (run.document("provenance").get("identity") for run in (self, other))
        return self.path.parent == other.path.parent or (mine is not None and mine == its)

    def fault(self) -> str | None:
        """The first file of the run that cannot be read, such as one that was cut short."""
        tables = (COUNTS, PROBABILITIES, COSINES, FIDELITY)
        files = [self.path / table.file for table in tables]
        for file in (*files, *(self.path / "allocation").glob("*.parquet")):
            try:
                if file.exists():
                    pq.read_metadata(file)
            except (OSError, ArrowException):
                return file.relative_to(self.path).as_posix()
        try:
            _ = self.metrics
        except (OSError, ValueError):
            return "metrics.jsonl"
        return None


def load_runs(
    root: str | Path, experiment: str, note: Callable[[str], object] = warnings.warn
) -> list[Run]:
    """Return every run below ``root/experiment``, finished or not, in order of the folders.

    A run is a folder, at any depth, with a configuration or an evaluation and a seed. Whatever
    else is there is left out, and ``note`` gets one sentence for each reason, which names it: what
    looks like a run (a logger's own ``config.yaml``, a folder inside a run, an empty ``seed-3``),
    a run whose files cannot be read, one of another experiment, a copy.

    Raises:
        BadInput: when there is no such folder or no run in it.
    """
    folder = Path(root) / experiment
    found = {
        file.parents[depth] if depth is not None else file
        for name, depth in (
            ("config.yaml", 0), (COUNTS.file, 1), (PROBABILITIES.file, 1), ("seed-*", None),
        )
        for file in folder.glob(f"**/{name}")
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
    }  # fmt: skip
    runs: list[Run] = []
    left: dict[str, list[str]] = {}
    for path in sorted(filter(Path.is_dir, found)):  # a folder comes right before what lies in it
        inside = bool(runs) and runs[-1].path in path.parents
        run = None if inside else _run(path, folder)
        if run is None:
            left.setdefault("not a run", []).append(path.relative_to(folder).as_posix())
        else:
            runs.append(run)
    own = [run for run in runs if run.config.get("experiment", experiment) == experiment]
    kept: list[Run] = []
    # A copy stands behind what it was copied from: the folder that a run makes, if it has ended.
    for run in sorted(runs, key=_first):
        if own and run not in own:
            left.setdefault("of another experiment", []).append(run.name)
        elif fault := run.fault():
            left.setdefault("not readable", []).append(f"{run.name}/{fault}")
        elif twin := next((other for other in kept if other.same_as(run)), None):
            left.setdefault("copies", []).append(f"{run.name} (of {twin.name})")
        else:
            kept.append(run)
    if not kept:
        raise BadInput(
            f"{folder} holds no run: train one first, e.g. 'python experiments/train.py "
            f"experiment={experiment.replace('-', '/', 1)} method=sera seed=0'."
        )
    for reason, names in left.items():
        note(f"Left out, {reason}: {', '.join(names)}.")
    return sorted(kept, key=lambda run: run.path)


def finished(runs: Iterable[Run]) -> tuple[list[Run], list[str]]:
    """Return the finished runs, and one sentence that names those left out (or none)."""
    runs = list(runs)
    # A base model's folder may hold nothing but its evaluation.
    alone = [r for r in runs if r.method == BASE and r.status == UNKNOWN and len(r.counts)]
    done = [run for run in runs if run.status == "done" or run in alone]
    left = [f"{run.name} ({run.status})" for run in runs if run not in done]
    return done, [f"Left out, not finished: {', '.join(left)}."] if left else []


def one_of_each_seed(label: str, runs: Iterable[Run]) -> list[Run]:
    """Return the runs in the order of their seeds.

    Raises:
        BadInput: when two have the same seed.
    """
    runs = sorted(runs, key=lambda run: run.seed)
    if len({run.seed for run in runs}) < len(runs):
        raise BadInput(f"{label}: two runs have the same seed: move one of them away.")
    return runs


def nothing_to_show(what: str, notes: Sequence[str], advice: str) -> BadInput:
    """Return the error of a report without a run: what is missing, what was left out, advice."""
    why = "".join(f"; {note[0].lower()}{note[1:].removesuffix('.')}" for note in notes)
    return BadInput(f"{what}{why}: {advice}.")


def _first(run: Run) -> tuple[bool, bool, int]:
    return run.status != "done", run.path.name != f"seed-{run.seed}", len(run.path.parts)


def _run(path: Path, folder: Path) -> Run | None:
    """The run in ``path``, or None where the folder is none."""
    own, config = RunFolder(path), {}
    if own.config.exists():
        try:
            config = own.read_config()
        except (OSError, BadInput):
            return None
    elif not any((path / table.file).exists() for table in (COUNTS, PROBABILITIES)):
        return None
    if path == folder:
        return None
    named = re.fullmatch(r"seed-(\d+)", path.name)
    seed = config.get("seed", int(named[1]) if named else None)
    if not isinstance(seed, int) or isinstance(seed, bool):
        return None
    name, method = path.relative_to(folder), config.get("method")
    return Run(
        path=path,
        name=name.as_posix(),
        method=method if isinstance(method, str) and name.parts[0] != BASE else name.parts[0],
        seed=seed,
        status=str(own.state() or UNKNOWN),
        config=config,
    )
