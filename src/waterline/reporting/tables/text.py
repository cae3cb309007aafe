"""How numbers, intervals and verdicts are written in tables."""

import math
from collections.abc import Sequence

from waterline.reporting.scores import Estimate

Grid = list[list[str]]


def signed(value: float, digits: int = 1) -> str:
    """Return '+2.1' or '−2.1', with a true minus sign, or '–' for NaN."""
    return "–" if math.isnan(value) else f"{value:+z.{digits}f}".replace("-", "−")


def plain(value: float, digits: int = 2) -> str:
    """Return '53.14', with a true minus sign, or '–' for NaN."""
    return "–" if math.isnan(value) else f"{value:z.{digits}f}".replace("-", "−")


def amount(value: float) -> str:
    """Return '102,400', or '–' for NaN."""
    return "–" if math.isnan(value) else f"{value:,.0f}"


def interval(bounds: tuple[float, float], sign: bool = False, digits: int = 1) -> str:
    """Return '[53.1, 58.0]', signed for differences, or '–' where it was not measured."""
    if any(map(math.isnan, bounds)):
        return "–"
    low, high = (signed(b, digits) if sign else plain(b, digits) for b in bounds)
    return f"[{low}, {high}]"


def verdict(delta: Estimate) -> str:
    """Return 'ahead', 'behind' or 'within noise', by the interval that a claim may rest on."""
    if math.isnan(delta.value):
        return "–"
    if not delta.excludes_zero:
        return "within noise"
    return "ahead" if delta.value > 0 else "behind"


def legible(delta: Estimate, digits: int) -> int:
    """Return the digits, at least ``digits``, at which a difference that counts is not zero.

    Both the value and the bounds that the verdict rests on must show it.
    """
    least = min(map(abs, (delta.value, *delta.interval)))
    if not delta.excludes_zero or least == 0 or round(least, digits) != 0:
        return digits
    return max(digits, math.ceil(-math.log10(least)))


def value_lines(
    label: str, values: Sequence[Estimate], digits: int = 2, paper: Sequence[float] | None = None
) -> Grid:
    """Return a row's lines: the means, the paper's values where given, and both intervals."""
    lines = [[label, "mean", *(plain(v.value, digits) for v in values)]]
    if paper is not None:
        lines.append(["", "paper", *(plain(value, digits) for value in paper)])
    unit = values[0].unit
    lines.append(["", unit, *(interval(v.units, digits=digits - 1) for v in values)])
    lines.append(["", "runs", *(interval(v.runs, digits=digits - 1) for v in values)])
    return lines


def difference_lines(label: str, deltas: Sequence[Estimate], digits: int = 2) -> Grid:
    """Return the lines of a difference, the last with the verdict at each column.

    A difference that is ahead or behind has digits enough to show it.
    """
    unit, basis = deltas[0].unit, deltas[0].basis
    values = [signed(d.value, legible(d, digits)) for d in deltas]
    bounds = [legible(d, digits - 1) for d in deltas]
    return [
        [label, "difference", *values],
        ["", unit, *(interval(d.units, True, n) for d, n in zip(deltas, bounds, strict=True))],
        ["", "runs", *(interval(d.runs, True, n) for d, n in zip(deltas, bounds, strict=True))],
        ["", f"by {basis}", *(verdict(d) for d in deltas)],
    ]
