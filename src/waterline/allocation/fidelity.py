"""The two quantities that decide what a rollout count is worth at success probability p."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def fidelity(p: ArrayLike, n: ArrayLike) -> NDArray[np.float64]:
    """Finite-rollout coefficient of the centred MaxRL gradient (SERA, Equation 3).

    κ(p, n) = 1 − (1 − p)^(n − 1) for n ≥ 1, and 0 at n = 0: with n rollouts the expected
    estimate is κ(p, n) ∇ log p. A group of one has κ = 0.

    Args:
        p: success probabilities in [0, 1]; broadcasts with `n`.
        n: rollout counts, integers ≥ 0.

    Raises:
        ValueError: a probability outside [0, 1] or NaN, or a negative count.
    """
    p_, n_ = _checked("fidelity", p, n)
    with np.errstate(divide="ignore", invalid="ignore"):  # p = 1 has an infinite exposure
        kappa = -np.expm1((n_ - 1.0) * np.log1p(-p_))
    return np.asarray(np.where(n_ <= 1, 0.0, kappa), dtype=np.float64)


def mixed_probability(p: ArrayLike, n: ArrayLike) -> NDArray[np.float64]:
    """Probability that a group holds a success and a failure (SERA, Equation 40).

    U(p, n) = 1 − (1 − p)^n − p^n, and 0 at n = 0. Only a mixed group gives a gradient. It is
    evaluated as it is written, to about 1e-16 in absolute terms: U ranks prompts, p and 1 − p tie
    up to rounding, and any other form would order such prompts differently from the paper's.

    Args:
        p: success probabilities in [0, 1]; broadcasts with `n`.
        n: rollout counts, integers ≥ 0.

    Raises:
        ValueError: a probability outside [0, 1] or NaN, or a negative count.
    """
    p_, n_ = _checked("mixed_probability", p, n)
    return np.asarray(np.where(n_ <= 1, 0.0, mixed_at(p_, n_)), dtype=np.float64)


def mixed_at(p: NDArray[np.float64], n: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """U(p, n) without checks, for n ≥ 2."""
    return np.asarray(np.maximum(1.0 - (1.0 - p) ** n - p**n, 0.0))


def _checked(
    name: str, p: ArrayLike, n: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    p_, n_ = np.asarray(p, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if not np.all((p_ >= 0.0) & (p_ <= 1.0)):
        raise ValueError(f"{name}: p must lie in [0, 1] without NaN; clip the estimates first.")
    if not np.all(n_ >= 0):
        raise ValueError(f"{name}: n holds a negative count or NaN; pass counts of at least 0.")
    return p_, n_
