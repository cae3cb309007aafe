"""Checks of an allocator's input; each failure is one sentence with a way out."""

import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray


def whole(name: str, value: SupportsIndex, least: int) -> int:
    """`value` as an int of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}={value!r}: must be a whole number.") from None
    if number < least:
        raise ValueError(f"{name}={number}: must be at least {least}.")
    return number


def observability_threshold(u0: float) -> float:
    """u0 as a float in [0, 1)."""
    if not 0.0 <= u0 < 1.0:
        raise ValueError(f"u0={u0}: must be a number of at least 0 and below 1.")
    return float(u0)


def vector(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """`values` as a non-empty (B,) float64 array."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"{name} has shape {array.shape}; pass one number per prompt, shape (B,) with B ≥ 1."
        )
    return array


# The success probabilities that allocation takes: from the least normal float64, below which
# numbers lose their digits, to the largest below 1.
LEAST_P, MOST_P = float(np.finfo(np.float64).tiny), float(np.nextafter(1.0, 0.0))


def inside_unit_interval(p: NDArray[np.float64]) -> None:
    """Raise unless every p lies in [LEAST_P, MOST_P]."""
    outside = ~((p >= LEAST_P) & (p <= MOST_P))  # also catches NaN
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"p[{row}] is {p[row]}; success estimates must lie strictly between 0 and 1, so clamp "
            "them first, for example with np.clip(p, 1e-12, 1 - 1e-12)."
        )


def all_known(known: ArrayLike | None, batch: int) -> bool:
    """Whether every prompt has an estimate."""
    return known is None or bool(_per_prompt("known", known, batch, np.bool_).all())


def total_budget(batch: int, n0: int | None, budget: int | None) -> int:
    """M: the budget if there is one, else B·n0."""
    if budget is not None:
        return whole("budget", budget, 1)
    if n0 is None:
        raise ValueError("neither n0 nor budget is given; pass n0=16 or budget=M.")
    return batch * whole("n0", n0, 1)


def lower_bounds(lower: ArrayLike | None, batch: int, n_min: int) -> NDArray[np.int64]:
    """(B,) int64 lower bounds: `lower`, and nowhere less than n_min."""
    if lower is None:
        return np.full(batch, n_min, dtype=np.int64)
    return np.maximum(_per_prompt("lower", lower, batch, np.integer).astype(np.int64), n_min)


def _per_prompt(name: str, values: ArrayLike, batch: int, kind: type[Any]) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (batch,) or not np.issubdtype(array.dtype, kind):
        raise ValueError(
            f"{name} has shape {array.shape} and type {array.dtype}; pass {batch} of type "
            f"{kind.__name__.rstrip('_')}, one per prompt."
        )
    return array


def feasible(budget: int, lower: NDArray[np.int64], n_max: int) -> None:
    """Raise unless Σ lower ≤ M ≤ B·n_max and no lower bound exceeds n_max."""
    batch = len(lower)
    if int(lower.max()) > n_max:
        row = int(np.argmax(lower))
        raise ValueError(
            f"lower[{row}] is {lower[row]} but n_max is {n_max}; lower the one or raise the other."
        )
    if budget > batch * n_max:
        raise ValueError(
            f"a budget of {budget} rollouts does not fit {batch} prompts of at most n_max = "
            f"{n_max} ({batch * n_max} in all); raise n_max to at least {-(-budget // batch)} or "
            "lower the budget."
        )
    if budget < int(lower.sum()):
        raise ValueError(
            f"a budget of {budget} rollouts is less than the lower bounds of {batch} prompts need "
            f"({int(lower.sum())} in all); raise the budget or lower the bounds."
        )
