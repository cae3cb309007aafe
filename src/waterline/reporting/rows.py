"""The rows of a table: finished and evaluated runs, grouped by what tells them apart."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from waterline.reporting.answers import Answers, collect
from waterline.reporting.kinds import Kind, in_order
from waterline.reporting.readers import finished
from waterline.reporting.run import Run
from waterline.runs import BadInput


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
        """How the row is called, e.g. 'Token-mean SERA'."""
        return self.kind.label

    def plan(self) -> tuple[object, ...]:
        """The settings that must be equal for two rows to be compared at equal budgets."""
        return (self.kind.normalisation, self.step, self.runs[0].n0)


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
    trained = [run for run in done if run.method != "base"]
    unread = [run for run in trained if run.last_step(split) is None]
    notes += _left_out(unread, f"not evaluated on {split}")
    partly = _partly(trained, split)
    notes += _left_out(partly, f"evaluation on {split} unfinished")
    unread += partly
    groups: dict[Kind, list[Run]] = {}
    for run in trained:
        if run not in unread:
            groups.setdefault(run.kind, []).append(run)
    if not groups:
        raise BadInput(
            f"No finished run is evaluated on {split}"
            + "".join(f"; {note[0].lower()}{note[1:].removesuffix('.')}" for note in notes)
            + ": finish one, or choose another split."
        )
    rows = _base(done, split, notes) if base else []
    alike = Counter(kind.without_settings() for kind in groups)
    for kind in in_order(groups, expected):
        name = kind.without_settings() if alike[kind.without_settings()] == 1 else kind
        rows.append(_row(name, groups[kind], split))
    lacking = [kind for kind in expected if kind not in alike]
    if lacking:
        notes.append(f"No finished run for: {'; '.join(kind.label for kind in lacking)}.")
    return rows, notes


def one_of_each_seed(label: str, runs: Iterable[Run]) -> list[Run]:
    """Return the runs in the order of their seeds.

    Raises:
        BadInput: when two have the same seed.
    """
    runs = sorted(runs, key=lambda run: run.seed)
    if len({run.seed for run in runs}) < len(runs):
        raise BadInput(f"{label}: two runs have the same seed: move one of them away.")
    return runs


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
    for run in sorted(done, key=lambda run: run.method != "base"):
        if run.seed not in source and len(run.answers(split, 0)):
            source[run.seed] = run
    if not source:
        notes.append(f"The base model is not evaluated on {split}.")
        return []
    kind = Kind(method="base")
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
