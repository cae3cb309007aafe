"""The rows of a table: finished and evaluated runs, grouped by normalisation and method."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from waterline.reporting.names import METHOD_LABELS, NORMALISATION_LABELS, rank, row_label
from waterline.reporting.readers import Run, finished
from waterline.reporting.scores import Answers, collect
from waterline.runs import BadInput


@dataclass(frozen=True)
class Row:
    """The seeds of one method under one normalisation; ``settings`` only where they tell apart."""

    normalisation: str
    method: str
    settings: str
    runs: tuple[Run, ...]
    answers: Answers
    step: int

    @property
    def label(self) -> str:
        """How the row is called, e.g. 'Token-mean SERA'."""
        return row_label(self.normalisation, self.method, self.settings)

    def plan(self) -> tuple[object, ...]:
        """The settings that must be equal for two rows to be compared."""
        first = self.runs[0]
        return (self.normalisation, self.step, first.setting("allocation.n0"))


def table_rows(
    runs: Iterable[Run], split: str, expected: Sequence[tuple[str, str]] = ()
) -> tuple[list[Row], list[str]]:
    """Group the runs that are finished and evaluated on ``split``, base model first.

    ``expected`` lists (normalisation, method) in the order wanted; other rows follow. Returns the
    rows and one sentence for each thing that was left out or is missing.

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
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in trained:
        if run not in unread:
            key = (run.normalisation, run.method, run.settings)
            groups.setdefault(key, []).append(run)
    if not groups:
        raise BadInput(
            f"No finished run is evaluated on {split}"
            + "".join(f"; {note[0].lower()}{note[1:].removesuffix('.')}" for note in notes)
            + ": finish one, or choose another split."
        )
    rows = _base(done, split, notes)
    for key in sorted(groups, key=lambda key: _order(key, expected)):
        alone = sum(other[:2] == key[:2] for other in groups) == 1
        rows.append(_row(key[0], key[1], "" if alone else key[2], groups[key], split))
    lacking = [key for key in expected if key not in {(r.normalisation, r.method) for r in rows}]
    if lacking:
        notes.append(f"No finished run for: {', '.join(row_label(*key) for key in lacking)}.")
    return rows, notes


def _row(normalisation: str, method: str, settings: str, runs: list[Run], split: str) -> Row:
    label = row_label(normalisation, method, settings)
    runs = sorted(runs, key=lambda run: run.seed)
    steps = {run.seed: run.last_step(split) for run in runs}
    if len(steps) < len(runs):
        raise BadInput(f"{label}: two runs have the same seed: move one of them away.")
    if len(set(steps.values())) > 1:
        raise BadInput(
            f"{label}: the seeds were last evaluated at different steps ({steps}): evaluate the "
            "same step of each."
        )
    answers = collect({run.seed: run.answers(split) for run in runs}, label)
    return Row(normalisation, method, settings, tuple(runs), answers, steps[runs[0].seed] or 0)


def _base(done: list[Run], split: str, notes: list[str]) -> list[Row]:
    """Take step 0 of the base model's own folder, else of any run that starts from it."""
    source: dict[int, Run] = {}
    for run in sorted(done, key=lambda run: run.method != "base"):
        if run.seed not in source and len(run.answers(split, 0)):
            source[run.seed] = run
    if not source:
        notes.append(f"The base model is not evaluated on {split}.")
        return []
    frames = {seed: run.answers(split, 0) for seed, run in source.items()}
    runs = tuple(source[seed] for seed in sorted(source))
    return [Row("", "base", "", runs, collect(frames, "Base model"), 0)]


def _order(
    key: tuple[str, str, str], expected: Sequence[tuple[str, str]]
) -> tuple[int, tuple[int, str], tuple[int, str], str]:
    place = list(expected).index(key[:2]) if key[:2] in expected else len(expected)
    return place, rank(NORMALISATION_LABELS, key[0]), rank(METHOD_LABELS, key[1]), key[2]


def _partly(runs: list[Run], split: str) -> list[Run]:
    """The runs that answered only some of the questions that another run answered."""
    answered = {run.path: set(run.answers(split).index) for run in runs}
    return [
        run
        for run in runs
        if any(answered[run.path] < a for a in answered.values()) and answered[run.path]
    ]


def _left_out(runs: list[Run], why: str) -> list[str]:
    names = ", ".join(f"{row_label(run.normalisation, run.method)} seed {run.seed}" for run in runs)
    return [f"Left out, {why}: {names}."] if runs else []
