"""When a supervised start ends: a rule on Pass@K that is fixed before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le, MinLen

from waterline.evaluation import SampledEvaluation
from waterline.runs import BadInput, RunFailed
from waterline.runs.settings import Whole, WholeOrZero, check_fields

Percent = Annotated[float, Ge(0), Le(100)]


@dataclass(frozen=True, kw_only=True)
class Until:
    """The start ends at the first evaluation whose Pass@K lies in every window.

    Args:
        every: how many steps lie between two evaluations. after: how many go before the first.
        evaluation: of a checkpoint; its n must suffice for every K.
        windows: of each its K, and the lowest and the highest Pass@K in percent; the first window
            is that of the value which grows with training.
        split: what is evaluated; never test.
    """

    every: Whole
    after: WholeOrZero = 0
    evaluation: SampledEvaluation
    windows: Annotated[Sequence[tuple[Whole, Percent, Percent]], MinLen(1)]
    split: Literal["dev"] = "dev"

    def __post_init__(self) -> None:
        check_fields(self)
        for k, low, high in self.windows:
            if low > high or k > self.evaluation.n or k not in self.evaluation.ks:
                raise BadInput(
                    f"windows=[[{k}, {low}, {high}]]: must be one of evaluation.ks up to its n, "
                    "the lowest Pass@K and the highest."
                )

    def met(self, row: Mapping[str, float], last: bool) -> bool:
        """Whether the values of an evaluation lie in the windows.

        Raises:
            RunFailed: No later one will, for the first value is above its window, or it was the
                last.
        """
        values = [100 * row[f"eval/pass@{k}"] for k, _, _ in self.windows]
        inside = [low <= v <= high for v, (_, low, high) in zip(values, self.windows, strict=True)]
        if not all(inside) and (last or values[0] > self.windows[0][2]):
            at = ", ".join(
                f"Pass@{k} {v:.1f}% for {low:g} to {high:g}%"
                for v, (k, low, high) in zip(values, self.windows, strict=True)
            )
            raise RunFailed(
                f"The supervised start has met no evaluation in supervised.until.windows ({at}): "
                "change the mix of its problems, its steps, or the windows."
            )
        return all(inside)
