"""From run folders to a table of Pass@K."""

from collections.abc import Iterable, Sequence

from waterline.reporting.budgets import budget, match_note, waterline_note
from waterline.reporting.kinds import Kind, per_budget
from waterline.reporting.names import method_label
from waterline.reporting.rows import Row, table_rows
from waterline.reporting.run import Run
from waterline.reporting.scores import SEEDS_FOR_A_CLAIM, estimate
from waterline.reporting.tables.comparison import compared, counterpart
from waterline.reporting.tables.pass_at_k import PassAtKTable
from waterline.runs import BadInput

ESTIMATOR_NOTES = {
    "unbiased": "Pass@K is the unbiased estimator 1 − C(n−c, K)/C(n, K), averaged over questions.",
    "bootstrap": "Pass@K is 1 − (1 − c/n)^K (K draws with replacement), averaged over questions.",
    "exact": "Pass@K is 1 − (1 − p)^K of the exact success probability p, averaged over questions.",
}
INTERVAL_NOTE = (
    "95% intervals. questions: checkpoints fixed, questions resampled; "
    "runs: seeds, then questions, resampled, paired by seed and question."
)


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
    order += per_budget(methods, (run.kind for run in runs)) if methods else []
    rows, notes = table_rows(runs, split, order, base)
    shown = _shown(ks, rows, notes)
    values = tuple(tuple(estimate(row.answers.scores(k, estimator)) for k in shown) for row in rows)
    budgets = tuple(budget(row) for row in rows)
    deltas = []
    for row, spent in zip(rows, budgets, strict=True):
        notes += [note] if (note := waterline_note(row, spent)) else []
        other = _baseline(row, rows, baseline, reference, notes)
        note = match_note(row, spent, other, budgets[rows.index(other)]) if other else None
        notes += [note] if note else []
        deltas.append(compared(row, other, shown, estimator))
    gaps = [
        compared(row, _reference(row, rows, reference, notes), shown, estimator) for row in rows
    ]
    few = min(len(row.answers.seeds) for row in rows if row.method != "base")
    if few < SEEDS_FOR_A_CLAIM:
        notes.append(
            f"With {few} seed{'s' * (few > 1)} in the smallest row, claims are about these "
            "checkpoints only, not about the methods."
        )
    used = dict.fromkeys(row.answers.estimator(estimator) for row in rows)
    return PassAtKTable(
        split=split,
        estimator=estimator,
        ks=shown,
        rows=tuple(rows),
        values=values,
        deltas=tuple(deltas),
        gaps=tuple(gaps),
        budgets=budgets,
        notes=(*(ESTIMATOR_NOTES[name] for name in used), INTERVAL_NOTE, *notes),
    )


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


def _baseline(
    row: Row, rows: Sequence[Row], method: str, reference: str | None, notes: list[str]
) -> Row | None:
    if row.method in (method, reference, "base"):
        return None
    same = [other for other in rows if other.method == method and other.plan() == row.plan()]
    alike = ["normalisation"] * bool(row.kind.normalisation) + ["rollouts per prompt and step"]
    what = f"{method_label(method)} with the same {', '.join(alike)}"
    return counterpart(row, same, what, notes)


def _reference(row: Row, rows: Sequence[Row], method: str | None, notes: list[str]) -> Row | None:
    if method is None or row.method in (method, "base"):
        return None
    same = [other for other in rows if other.method == method and other.step == row.step]
    return counterpart(row, same, f"{method_label(method)} with the same step", notes)
