"""What the seeds of one row answered, counted from samples or known exactly."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterline.evaluation import best_at_k_bootstrap, exact_pass_at_k, pass_at_k
from waterline.runs import BadInput, unknown_name

Floats = NDArray[np.float64]
ESTIMATORS: dict[str, Callable[..., Floats]] = {
    "unbiased": pass_at_k,
    "bootstrap": best_at_k_bootstrap,
}


class Answers(Protocol):
    """Scores (S, Q) of the same questions for every seed.

    ``most`` is the largest K that can be scored; ``size`` says in words what was asked.
    """

    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def prompts(self) -> NDArray[np.int64]: ...
    @property
    def most(self) -> float: ...
    @property
    def size(self) -> str: ...

    def scores(self, k: int, estimator: str) -> Floats:
        """Return Pass@K of each seed and question, (S, Q), as a fraction."""
        ...

    def estimator(self, asked: str) -> str:
        """Return the name of the estimator that ``scores`` uses when ``asked`` is asked for."""
        ...

    def only(self, seeds: Sequence[int]) -> Self:
        """Return the rows of these seeds, in this order."""
        ...


@dataclass(frozen=True, slots=True)
class Counted:
    """Of ``n`` (S, Q) sampled responses, ``c`` (S, Q) were correct."""

    seeds: tuple[int, ...]
    prompts: NDArray[np.int64]
    n: NDArray[np.int64]
    c: NDArray[np.int64]

    @property
    def most(self) -> float:
        """The fewest responses to a question."""
        return float(self.n.min())

    @property
    def size(self) -> str:
        """'200 × 256', or '200 × 128–256' where the questions differ."""
        low, high = int(self.n.min()), int(self.n.max())
        span = f"{low:,}" if low == high else f"{low:,}–{high:,}"
        return f"{len(self.prompts):,} × {span}"

    def scores(self, k: int, estimator: str) -> Floats:
        """Return the estimate of Pass@K called ``estimator``.

        Raises:
            BadInput: when the estimator is unknown.
        """
        if estimator not in ESTIMATORS:
            raise unknown_name("estimator", estimator, ESTIMATORS)
        return np.asarray(ESTIMATORS[estimator](self.n, self.c, k), dtype=np.float64)

    def estimator(self, asked: str) -> str:
        """Return ``asked``."""
        return asked

    def only(self, seeds: Sequence[int]) -> "Counted":
        """Return the rows of these seeds, in this order."""
        rows = [self.seeds.index(seed) for seed in seeds]
        return Counted(tuple(seeds), self.prompts, self.n[rows], self.c[rows])


@dataclass(frozen=True, slots=True)
class Exact:
    """Success probabilities ``p`` (S, Q): Pass@K of any K, with no sample and no estimator."""

    seeds: tuple[int, ...]
    prompts: NDArray[np.int64]
    p: Floats

    @property
    def most(self) -> float:
        """There is no largest K."""
        return math.inf

    @property
    def size(self) -> str:
        """'5,000, exact'."""
        return f"{len(self.prompts):,}, exact"

    def scores(self, k: int, estimator: str) -> Floats:
        """Return 1 − (1 − p)^K, whatever the estimator."""
        return exact_pass_at_k(self.p, k)

    def estimator(self, asked: str) -> str:
        """Return 'exact'."""
        return "exact"

    def only(self, seeds: Sequence[int]) -> "Exact":
        """Return the rows of these seeds, in this order."""
        return Exact(tuple(seeds), self.prompts, self.p[[self.seeds.index(s) for s in seeds]])


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
    columns = {name: np.stack([frames[seed][name] for seed in seeds]) for name in first}
    prompts = first.index.to_numpy(dtype=np.int64)
    if "p" in columns:
        return Exact(seeds, prompts, columns["p"].astype(np.float64))
    return Counted(seeds, prompts, *(columns[name].astype(np.int64) for name in "nc"))


def paired(a: Answers, b: Answers, label: str) -> tuple[Answers, Answers]:
    """Return both on the seeds that they share.

    Raises:
        BadInput: when they share no seed, or were asked different questions.
    """
    seeds = [seed for seed in a.seeds if seed in b.seeds]
    if not seeds:
        theirs = (", ".join(map(str, answers.seeds)) for answers in (a, b))
        raise BadInput(f"{label} share no seed ({' and '.join(theirs)}): run both on equal seeds.")
    if not np.array_equal(a.prompts, b.prompts):
        raise BadInput(
            f"{label} were evaluated on different questions: evaluate both on the same split."
        )
    return a.only(seeds), b.only(seeds)
