"""Tables 2 and 4: Pass@K with both intervals, differences of methods, budgets."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import isnan, log2, nan

import numpy as np
import pandas as pd

import waterline.reporting.render as render
from waterline.evaluation import Estimate, estimate, exact_pass_at_k
from waterline.reporting.budgets import Budget, budget, match_notes, waterline_notes
from waterline.reporting.kinds import BASE, Kind, method_label, per_budget
from waterline.reporting.rows import Row, difference, table_rows
from waterline.reporting.runs import Run
from waterline.runs import BadInput

BRIEF = (1, 8, 128, 1024)  # the K that a terminal shows, or those nearest to them, of more than …
MANY = 6
ESTIMATOR_NOTES = {
    "unbiased": "Pass@K is the unbiased estimator 1 − C(n−c, K)/C(n, K), averaged over questions.",
    "bootstrap": "Pass@K is 1 − (1 − c/n)^K (K draws with replacement), averaged over questions.",
    "exact": "Pass@K is 1 − (1 − p)^K of the exact success probability p, averaged over questions.",
}
INTERVAL_NOTE = (
    "95% intervals, paired by seed and question. questions: checkpoints fixed, questions "
    "resampled; runs: Student's t over the seeds and over the questions, added in squares."
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``row`` minus ``other`` in points, one value per K, paired by seed and question."""

    row: Row
    other: Row
    values: tuple[Estimate, ...]

    @property
    def names(self) -> str:
        """E.g. 'SERA − MaxRL'."""
        return f"{method_label(self.row.method)} − {method_label(self.other.method)}"

    @property
    def label(self) -> str:
        """E.g. 'Token-mean SERA − MaxRL'."""
        return self.row.kind.titled(self.names)


@dataclass(frozen=True)
class PassAtKTable(render.Table):
    """A table of Pass@K in percent.

    ``values[i][j]`` belongs to ``rows[i]`` and ``ks[j]``; ``deltas[i]`` is the difference from the
    baseline of equal budget and ``gaps[i]`` that from the reference, None where there is none.
    ``classes`` is given where a response is one of so many labels, for the level of chance.
    """

    split: str
    estimator: str
    ks: tuple[int, ...]
    rows: tuple[Row, ...]
    values: tuple[tuple[Estimate, ...], ...]
    deltas: tuple[Comparison | None, ...]
    gaps: tuple[Comparison | None, ...]
    budgets: tuple[Budget, ...]
    classes: int | None = None

    @property
    def chance(self) -> dict[int, float]:
        """Pass@K in percent of K uniform guesses, by K, where it is known."""
        if self.classes is None:
            return {}
        return {k: 100 * float(exact_pass_at_k(1 / self.classes, k)) for k in self.ks}

    def sections(self, paper: pd.DataFrame | None = None) -> list[render.Section]:
        """Return values, differences where there are any, and budgets."""
        values: render.Grid = []
        for row, line in zip(self.rows, self.values, strict=True):
            theirs = None if paper is None else [_paper(paper, row.kind, k) for k in self.ks]
            values += render.value_lines(row.label, line, paper=theirs)
        if self.classes:
            guessed = [render.plain(value) for value in self.chance.values()]
            values.append(["Chance", f"1 of {self.classes:,}", *guessed])
        found = [self._section("Pass@K (%)", values)]
        for title, comparisons in (("", self.deltas), (" from {}", self.gaps)):
            if shown := [c for c in comparisons if c]:
                lines = [line for c in shown for line in render.difference_lines(c.label, c.values)]
                name = title.format(method_label(shown[0].other.method))
                found.append(self._section(f"Differences{name} (points)", lines))
        return [*found, self._budgets()]

    def tidy(self) -> pd.DataFrame:
        """Return one line per row and K; percent, points, and NaN where nothing was measured.

        The lines of the method 'chance' are the level of uniform guesses.
        """
        places = product(range(len(self.rows)), range(len(self.ks)))
        lines = [self._line(i, j) for i, j in places]
        about = {"split": self.split, "estimator": "exact", "method": "chance", "unit": "%"}
        lines += [about | {"k": k, "value": value} for k, value in self.chance.items()]
        return pd.DataFrame(lines)

    def _section(self, title: str, lines: render.Grid) -> render.Section:
        header = ["", "", *(f"K = {k}" for k in self.ks)]
        return render.Section(title, header, lines, brief=[2 + j for j in _brief(self.ks)])

    def _budgets(self) -> render.Section:
        header = ["Row", "Seeds", "Step", "Questions × responses", "Rollouts", "Tokens"]
        lines = []
        for row, spent in zip(self.rows, self.budgets, strict=True):
            share = "–" if isnan(spent.waterline) else f"{100 * spent.waterline:.1f}%"
            seeds = ", ".join(map(str, row.answers.seeds))
            numbers = [render.amount(spent.rollouts), render.amount(spent.tokens), share]
            lines.append([row.label, seeds, str(row.step), row.answers.size, *numbers])
        return render.Section("Budgets (per run)", [*header, "Waterline steps"], lines, fixed=7)

    def _line(self, i: int, j: int) -> dict[str, object]:
        row, value = self.rows[i], self.values[i][j]
        line: dict[str, object] = {
            "split": self.split,
            "step": row.step,
            "estimator": row.answers.estimator(self.estimator),
            "normalisation": row.kind.normalisation,
            "n0": row.runs[0].n0 if row.method != BASE else None,
            "method": row.method,
            "p_hat": row.kind.p_hat,
            "settings": row.kind.settings,
            "k": self.ks[j],
            "value": value.value,
            "unit": "%",
            **render.bound_columns(value),
        }
        for found, names in (
            (self.deltas, ("baseline", "delta", "")),
            (self.gaps, ("reference", "gap", "gap_")),
        ):
            if found is self.deltas or any(found):
                c = found[i]
                delta, other = (c.values[j], c.other.method) if c else (None, "")
                line |= render.difference_columns(delta, other, names=names)
        return line | {
            "seeds": " ".join(map(str, row.answers.seeds)),
            "questions": len(row.answers.prompts),
            "responses": int(row.answers.most) if np.isfinite(row.answers.most) else None,
            **{f"budget_{name}": value for name, value in asdict(self.budgets[i]).items()},
        }


def pass_at_k_table(
    runs: Iterable[Run],
    ks: Sequence[int],
    split: str = "test",
    estimator: str = "unbiased",
    *,
    baseline: str = "maxrl",
    reference: str | None = None,
    expected: Sequence[Sequence[str]] = (),
    methods: Sequence[str] = (),
    base: bool = True,
) -> PassAtKTable:
    """Return the table of the final checkpoints; runs that cannot be shown are named in its notes.

    A row's baseline is the row of method ``baseline`` with the same normalisation, rollouts per
    prompt and step; its reference is the row of method ``reference`` with the same step, whatever
    it spent. ``estimator`` is 'unbiased' (SERA, Eq. 48) or 'bootstrap' (with replacement, as in
    SERA's Table 4), and is not read where the success probability is known.

    The rows stand in the order of ``expected``, pairs (normalisation, method), or of ``methods``
    at each number of rollouts per prompt; other rows follow. ``base`` shows step 0 as a row.

    Raises:
        BadInput: when no run can be shown, or no K is at most the number of responses.
    """
    runs = list(runs)
    order = [Kind(pair[0], method=pair[1]) for pair in expected]
    exact = any(run.exact for run in runs)
    order += per_budget(methods, (run.kind_if(exact) for run in runs), reference)
    rows, notes = table_rows(runs, split, order, base)
    shown = _shown(ks, rows, notes)
    budgets = [budget(row.runs, row.step) for row in rows]

    def minus(
        row: Row, method: str | None, alike: Callable[[Row], object], among: str
    ) -> Comparison | None:
        if method is None or row.method in (method, reference, BASE):
            return None
        others = [o for o in rows if o.method == method and alike(o) == alike(row)]
        among = f"{method_label(method)} with the same {among}"
        if other := _counterpart(row, others, among, notes):
            points = tuple(difference(row, other, k, estimator) for k in shown)
            return Comparison(row, other, points)
        return None

    deltas = []
    for row, spent in zip(rows, budgets, strict=True):
        notes += waterline_notes(row.label, row.runs, spent) if row.method != BASE else []
        loss = "normalisation, " * bool(row.kind.normalisation)
        delta = minus(row, baseline, Row.plan, f"{loss}rollouts per prompt and step")
        if delta:
            theirs = budgets[rows.index(delta.other)]
            notes += match_notes(row.label, spent, delta.other.label, theirs)
        deltas.append(delta)
    gaps = [minus(row, reference, lambda other: other.step, "step") for row in rows]
    few = min(len(row.answers.seeds) for row in rows if row.method != BASE)
    claim = "claims are about these checkpoints only, not about the methods."
    notes += render.few_seeds(few, f" in the smallest row, {claim}")
    used = dict.fromkeys(row.answers.estimator(estimator) for row in rows)
    return PassAtKTable(
        runs=tuple(run for row in rows for run in row.runs),
        subtitle=f"Split: {split}.",
        split=split,
        estimator=estimator,
        ks=shown,
        rows=tuple(rows),
        values=tuple(
            tuple(estimate(r.answers.scores(k, estimator), shares=True) for k in shown)
            for r in rows
        ),
        deltas=tuple(deltas),
        gaps=tuple(gaps),
        budgets=tuple(budgets),
        classes=_classes(rows),
        notes=(*(ESTIMATOR_NOTES[name] for name in used), INTERVAL_NOTE, *notes),
    )


def _classes(rows: Sequence[Row]) -> int | None:
    """The number of labels that all rows chose from; None where it is not one."""
    found = {int(run.setting("task.classes", 0)) for row in rows for run in row.runs}
    exact = all(row.answers.exact for row in rows)
    return found.pop() or None if exact and len(found) == 1 else None


def _shown(ks: Sequence[int], rows: Sequence[Row], notes: list[str]) -> tuple[int, ...]:
    """The K that every row can be scored at."""
    fewest = min(row.answers.most for row in rows)
    shown = tuple(k for k in ks if k <= fewest)
    if not shown:
        raise BadInput(
            f"Every K is above the {fewest:g} responses per question: ask for smaller K."
        )
    if len(shown) < len(ks):
        dropped = ", ".join(str(k) for k in ks if k > fewest)
        notes.append(f"Not shown, above the {fewest:g} responses per question: K = {dropped}.")
    return shown


def _counterpart(row: Row, others: Sequence[Row], among: str, notes: list[str]) -> Row | None:
    """The first of ``others`` if it shares a seed; what stands in the way goes to ``notes``."""
    if not others:
        notes.append(f"No difference for {row.label}: there is no {among}.")
        return None
    other = others[0]
    shared = set(row.answers.seeds) & set(other.answers.seeds)
    if not shared:
        notes.append(f"No difference for {row.label}: it shares no seed with {other.label}.")
        return None
    if len(shared) < len(row.answers.seeds):
        seeds = ", ".join(map(str, sorted(shared)))
        notes.append(
            f"The difference of {row.label} from {other.label} is over the shared seeds {seeds} "
            "only."
        )
    return other


def _brief(ks: Sequence[int]) -> list[int]:
    """The places in ``ks`` that a terminal shows, [] for all."""
    if len(ks) <= MANY:
        return []
    return sorted({min(range(len(ks)), key=lambda j: abs(log2(ks[j] / k))) for k in BRIEF})


def _paper(paper: pd.DataFrame, kind: Kind, k: int) -> float:
    cell = {"normalisation": kind.normalisation or None, "n0": kind.n0, "method": kind.method}
    return nan if kind.p_hat else render.paper_value(paper, metric="pass_at_k", k=k, **cell)
