"""One row of a Pass@K table minus another."""

from collections.abc import Sequence
from dataclasses import dataclass

from waterline.reporting.names import method_label
from waterline.reporting.rows import Row
from waterline.reporting.scores import Estimate, difference


@dataclass(frozen=True, slots=True)
class Comparison:
    """``row`` minus ``other`` in points, one value per K, paired by seed and question."""

    row: Row
    other: Row
    values: tuple[Estimate, ...]

    @property
    def label(self) -> str:
        """E.g. 'Token-mean SERA − MaxRL'."""
        names = f"{method_label(self.row.method)} − {method_label(self.other.method)}"
        return self.row.kind.titled(names)


def compared(row: Row, other: Row | None, ks: Sequence[int], estimator: str) -> Comparison | None:
    """Return the comparison of two rows, None where there is no other."""
    if other is None:
        return None
    label = f"{row.label} and {other.label}"
    values = tuple(difference(row.answers, other.answers, k, estimator, label) for k in ks)
    return Comparison(row, other, values)


def counterpart(row: Row, candidates: Sequence[Row], among: str, notes: list[str]) -> Row | None:
    """Return the first candidate if it shares a seed; what stands in the way goes to ``notes``.

    ``among`` says which rows could have been candidates, e.g. 'MaxRL with the same step'.
    """
    if not candidates:
        notes.append(f"No difference for {row.label}: there is no {among}.")
        return None
    other = candidates[0]
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
