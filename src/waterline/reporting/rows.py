"""The rows of a table: runs that differ by their seed alone, and what they answered."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterline.evaluation import Estimate, best_at_k_bootstrap, estimate, exact_pass_at_k, pass_at_k
from waterline.reporting.kinds import BASE, Kind, in_order
from waterline.reporting.runs import Run, finished, nothing_to_show, one_of_each_seed
from waterline.runs import BadInput, unknown_name

Floats = NDArray[np.float64]
ESTIMATORS: dict[str, Callable[..., Floats]] = {
    "unbiased": pass_at_k,
    "bootstrap": best_at_k_bootstrap,
}

STATES = ("done", "running", "preempted", "failed", "unknown", "missing")


@dataclass(frozen=True)
class Answers:
    """What S seeds answered to the same Q questions.

    ``columns`` of shape (S, Q): of ``n`` sampled responses ``c`` were correct; or ``p`` alone, the
    exact success probability, which gives Pass@K of any K without an estimator.
    """

    seeds: tuple[int, ...]
    prompts: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]

    @property
    def exact(self) -> bool:
        """Whether success probabilities are known."""
        return "p" in self.columns

    @property
    def most(self) -> float:
        """The largest K that can be scored: the fewest responses to a question."""
        return math.inf if self.exact else float(self.columns["n"].min())

    @property
    def size(self) -> str:
        """'200 × 256', '200 × 128–256' where the questions differ, or '5,000, exact'."""
        questions = f"{len(self.prompts):,}"
        if self.exact:
            return f"{questions}, exact"
        low, high = (f"{edge(self.columns['n']):,}" for edge in (np.min, np.max))
        return f"{questions} × {low}" + f"–{high}" * (low != high)

    def scores(self, k: int, estimator: str) -> Floats:
        """Return Pass@K of each seed and question, (S, Q), as a fraction.

        Raises:
            BadInput: when the estimator is unknown.
        """
        if self.exact:
            return exact_pass_at_k(self.columns["p"], k)
        if estimator not in ESTIMATORS:
            raise unknown_name("estimator", estimator, ESTIMATORS)
        return ESTIMATORS[estimator](self.columns["n"], self.columns["c"], k)

    def estimator(self, asked: str) -> str:
        """Return the name of the estimator that ``scores`` uses when ``asked`` is asked for."""
        return "exact" if self.exact else asked

    def only(self, seeds: Sequence[int]) -> "Answers":
        """Return the answers of these seeds, in this order."""
        rows = [self.seeds.index(seed) for seed in seeds]
        kept = {name: values[rows] for name, values in self.columns.items()}
        return Answers(tuple(seeds), self.prompts, kept)


def collect(frames: dict[int, pd.DataFrame], label: str) -> Answers:
    """Stack the evaluations of several seeds; each frame has n and c, or p, by prompt id.

    Raises:
        BadInput: when the seeds were not asked the same questions, or not in the same way.
    """
    seeds = tuple(sorted(frames))
    first = frames[seeds[0]]
    for seed in seeds[1:]:
        if not frames[seed].index.equals(first.index) or set(frames[seed]) != set(first):
            raise BadInput(
                f"{label}: seeds {seeds[0]} and {seed} were evaluated on different questions: "
                "evaluate both on the same split."
            )
    columns = {str(name): np.stack([frames[seed][name] for seed in seeds]) for name in first}
    return Answers(seeds, first.index.to_numpy(dtype=np.int64), columns)


@dataclass(frozen=True)
class Row:
    """The seeds of one kind; ``kind.settings`` only where they tell rows apart."""

    kind: Kind
    runs: tuple[Run, ...]
    answers: Answers
    step: int

    @property
    def method(self) -> str:
        """The method's name."""
        return self.kind.method

    @property
    def label(self) -> str:
        """The name of the row, e.g. 'Token-mean SERA'."""
        return self.kind.label

    def plan(self) -> tuple[object, ...]:
        """The settings that must be equal for two rows to be compared at equal budgets."""
        return (self.kind.normalisation, self.step, self.runs[0].n0)


def difference(a: Row, b: Row, k: int, estimator: str) -> Estimate:
    """Return Pass@K of ``a`` minus ``b`` in points, paired by question and by shared seed.

    There must be a shared seed.

    Raises:
        BadInput: when they were asked different questions.
    """
    ours, theirs = a.answers, b.answers
    seeds = [seed for seed in ours.seeds if seed in theirs.seeds]
    if not np.array_equal(ours.prompts, theirs.prompts):
        raise BadInput(
            f"{a.label} and {b.label} were evaluated on different questions: evaluate both on the "
            "same split."
        )
    a_scores, b_scores = (side.only(seeds).scores(k, estimator) for side in (ours, theirs))
    return estimate(a_scores - b_scores)


def table_rows(
    runs: Iterable[Run], split: str, expected: Sequence[Kind] = (), base: bool = True
) -> tuple[list[Row], list[str]]:
    """Group the runs that are finished and evaluated on ``split``, base model first.

    ``expected`` lists the kinds (without settings) in the order wanted; other rows follow. Without
    ``base``, no row shows step 0, as where training starts from random weights. Returns the rows
    and one sentence for each thing that was left out or is missing.

    Raises:
        BadInput: when no run is left.
    """
    runs = list(runs)
    done, notes = finished(runs)
    trained = [run for run in done if run.method != BASE]
    unread = [run for run in trained if run.last_step(split) is None]
    notes += _left_out(unread, f"not evaluated on {split}")
    partly = _partly(trained, split)
    notes += _left_out(partly, f"evaluation on {split} unfinished")
    groups: dict[Kind, list[Run]] = {}
    for run in trained:
        if run not in unread and run not in partly:
            groups.setdefault(run.kind, []).append(run)
    if not groups:
        what = f"No finished run is evaluated on {split}"
        raise nothing_to_show(what, notes, "finish one, or choose another split")
    rows = _base(done, split, notes) if base else []
    alike = Counter(kind.without_settings() for kind in groups)
    for kind in in_order(groups, expected):
        name = kind.without_settings() if alike[kind.without_settings()] == 1 else kind
        rows.append(_row(name, groups[kind], split))
    return rows, notes + seed_states(runs, expected)


def seed_states(runs: Iterable[Run], expected: Sequence[Kind]) -> list[str]:
    """Return one line for each expected row: which seeds are done, running, failed or missing.

    The seeds are those that any of the runs has. Rows in the same state share a line.
    """
    runs = sorted(runs, key=lambda run: run.status == "done")  # of two settings, one may be done
    exact = any(run.exact for run in runs)
    seeds = sorted({run.seed for run in runs if run.method != BASE})
    lines: dict[str, list[str]] = {}
    for kind in expected:
        known = {r.seed: r.status for r in runs if r.kind_if(exact).without_settings() == kind}
        states = {str(seed): known.get(seed, "missing") for seed in seeds}
        by_state = {name: [s for s in states if states[s] == name] for name in STATES}
        line = "; ".join(f"{', '.join(found)} {name}" for name, found in by_state.items() if found)
        lines.setdefault(f"seed{'s' * (len(seeds) > 1)} {line}.", []).append(kind.label)
    return [f"{'; '.join(labels)}: {line}" for line, labels in lines.items()]


def _row(kind: Kind, runs: list[Run], split: str) -> Row:
    runs = one_of_each_seed(kind.label, runs)
    steps = {run.seed: run.last_step(split) for run in runs}
    if len(set(steps.values())) > 1:
        raise BadInput(
            f"{kind.label}: the seeds were last evaluated at different steps ({steps}): evaluate "
            "the same step of each."
        )
    answers = collect({run.seed: run.answers(split) for run in runs}, kind.label)
    return Row(kind, tuple(runs), answers, steps[runs[0].seed] or 0)


def _base(done: list[Run], split: str, notes: list[str]) -> list[Row]:
    """Take step 0 of the base model's own folder, else of any run that starts from it."""
    source: dict[int, Run] = {}
    for run in sorted(done, key=lambda run: run.method != BASE):
        if run.seed not in source and len(run.answers(split, 0)):
            source[run.seed] = run
    if not source:
        notes.append(f"The base model is not evaluated on {split}.")
        return []
    kind = Kind(method=BASE)
    frames = {seed: run.answers(split, 0) for seed, run in source.items()}
    runs = tuple(source[seed] for seed in sorted(source))
    return [Row(kind, runs, collect(frames, kind.label), 0)]


def _partly(runs: list[Run], split: str) -> list[Run]:
    """The runs that answered only some of the questions that another run answered."""
    answered = {run.path: set(run.answers(split).index) for run in runs}
    return [
        run
        for run in runs
        if any(answered[run.path] < a for a in answered.values()) and answered[run.path]
    ]


def _left_out(runs: list[Run], why: str) -> list[str]:
    names = "; ".join(f"{run.kind.without_settings().label}, seed {run.seed}" for run in runs)
    return [f"Left out, {why}: {names}."] if runs else []
