"""One sentence that compares two methods at one K."""

from collections.abc import Iterable

from waterline.reporting.names import method_label
from waterline.reporting.rows import Row, table_rows
from waterline.reporting.run import Run
from waterline.reporting.scores import SEEDS_FOR_A_CLAIM, difference
from waterline.reporting.tables.text import interval, legible, signed, verdict
from waterline.runs import BadInput


def compare(
    runs_a: Iterable[Run],
    runs_b: Iterable[Run],
    k: int,
    split: str = "test",
    estimator: str = "unbiased",
) -> str:
    """Return e.g. 'SERA − MaxRL at Pass@64: +2.1 points [−0.3, +4.4] (runs): within noise'.

    Both are read at their last evaluated step and paired by seed and question. The interval is
    the *runs* interval from three seeds on; below, it is the *questions* interval and the sentence
    says that it speaks of these checkpoints only.

    Raises:
        BadInput: when either side is not one evaluated method, or they share no seed.
    """
    (a, left_a), (b, left_b) = _only(runs_a, split), _only(runs_b, split)
    delta = difference(a.answers, b.answers, k, estimator, f"{a.label} and {b.label}")
    names = f"{method_label(a.method)} − {method_label(b.method)}"
    digits = legible(delta, 1)
    text = (
        f"{names} at Pass@{k}: {signed(delta.value, digits)} points "
        f"{interval(delta.interval, True, digits)} ({delta.basis}): {verdict(delta)}"
    )
    if delta.seeds < SEEDS_FOR_A_CLAIM:
        text += f"; with {delta.seeds} seed{'s' * (delta.seeds > 1)}, about these checkpoints only"
    return ". ".join([text, *left_a, *left_b]).removesuffix(".")


def _only(runs: Iterable[Run], split: str) -> tuple[Row, list[str]]:
    rows, notes = table_rows(runs, split)
    rows = [row for row in rows if row.method != "base"]
    if len(rows) > 1:
        raise BadInput(
            f"The runs to compare are of {len(rows)} kinds ({'; '.join(r.label for r in rows)}): "
            "pass the runs of one method under one setting."
        )
    return rows[0], [note.removesuffix(".") for note in notes if note.startswith("Left out")]
