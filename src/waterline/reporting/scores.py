"""Per-question scores of the runs of one row, and their two intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterline.evaluation import (
    best_at_k_bootstrap,
    pass_at_k,
    questions_interval,
    runs_interval,
)
from waterline.runs import BadInput, unknown_name

Floats = NDArray[np.float64]
ESTIMATORS: dict[str, Callable[..., Floats]] = {
    "unbiased": pass_at_k,
    "bootstrap": best_at_k_bootstrap,
}
SEEDS_FOR_A_CLAIM = 3


@dataclass(frozen=True, slots=True)
class Answers:
    """Counts of one row: ``n``, ``c`` (S, Q) over the same questions for every seed."""

    seeds: tuple[int, ...]
    prompts: NDArray[np.int64]
    n: NDArray[np.int64]
    c: NDArray[np.int64]

    def scores(self, k: int, estimator: str) -> Floats:
        """Return Pass@K of each seed and question, (S, Q), as a fraction.

        Raises:
            BadInput: when the estimator is unknown.
        """
        if estimator not in ESTIMATORS:
            raise unknown_name("estimator", estimator, ESTIMATORS)
        return np.asarray(ESTIMATORS[estimator](self.n, self.c, k), dtype=np.float64)

    def only(self, seeds: Sequence[int]) -> "Answers":
        """Return the rows of these seeds, in this order."""
        rows = [self.seeds.index(seed) for seed in seeds]
        return Answers(tuple(seeds), self.prompts, self.n[rows], self.c[rows])


def collect(frames: dict[int, pd.DataFrame], label: str) -> Answers:
    """Stack the counts of several seeds; each frame has n and c by prompt id.

    Raises:
        BadInput: when the seeds were not asked the same questions.
    """
    seeds = tuple(sorted(frames))
    prompts = frames[seeds[0]].index
    for seed in seeds[1:]:
        if not frames[seed].index.equals(prompts):
            raise BadInput(
                f"{label}: seeds {seeds[0]} and {seed} were evaluated on different questions: "
                "evaluate both on the same split."
            )
    n, c = (np.stack([frames[seed][name] for seed in seeds]).astype(np.int64) for name in "nc")
    return Answers(seeds, prompts.to_numpy(dtype=np.int64), n, c)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean in percent (or points) with both intervals; ``runs`` is NaN for a single seed."""

    value: float
    questions: tuple[float, float]
    runs: tuple[float, float]
    seeds: int

    @property
    def basis(self) -> str:
        """The interval on which a claim may rest: 'runs' from three seeds on, else 'questions'."""
        return "runs" if self.seeds >= SEEDS_FOR_A_CLAIM else "questions"

    @property
    def interval(self) -> tuple[float, float]:
        """The interval called ``basis``."""
        return self.runs if self.basis == "runs" else self.questions

    @property
    def excludes_zero(self) -> bool:
        """Whether ``interval`` lies on one side of zero."""
        return self.interval[0] > 0 or self.interval[1] < 0


def estimate(scores: Floats) -> Estimate:
    """Return the mean of ``scores`` (S, Q), fractions or their paired differences, in percent."""
    questions = questions_interval(scores.mean(axis=0))
    runs = runs_interval(scores) if len(scores) > 1 else None
    return Estimate(
        value=100 * questions.estimate,
        questions=(100 * questions.low, 100 * questions.high),
        runs=(100 * runs.low, 100 * runs.high) if runs else (np.nan, np.nan),
        seeds=len(scores),
    )


def paired(a: Answers, b: Answers, label: str) -> tuple[Answers, Answers]:
    """Return both on the seeds that they share.

    Raises:
        BadInput: when they share no seed, or were asked different questions.
    """
    seeds = [seed for seed in a.seeds if seed in b.seeds]
    if not seeds:
        raise BadInput(
            f"{label} share no seed ({_list(a.seeds)} and {_list(b.seeds)}): run both on equal "
            "seeds."
        )
    if not np.array_equal(a.prompts, b.prompts):
        raise BadInput(
            f"{label} were evaluated on different questions: evaluate both on the same split."
        )
    return a.only(seeds), b.only(seeds)


def difference(a: Answers, b: Answers, k: int, estimator: str, label: str) -> Estimate:
    """Return Pass@K of ``a`` minus ``b`` in points, paired by seed and question."""
    a, b = paired(a, b, label)
    return estimate(a.scores(k, estimator) - b.scores(k, estimator))


def _list(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
