"""Success estimates from the history of each prompt, without a rollout of the current batch."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.success.ids import integers, rows_of


class DiscountedBeta:
    """Discounted Beta history (SERA, Appendix C.1, Equation 33).

    At the end of an epoch in which prompt q gave k successes in n responses,

        S ← λ S + k,   F ← λ F + n − k,   p̂ = (α + S) / (α + β + S + F).

    Estimates stay frozen within an epoch: outcomes wait as pending counts. A prompt is known
    once responses of its own were taken in at an epoch's end, and stays so; a prompt that gave
    none in an epoch is discounted like the others. The prior is not discounted.

    Args:
        alpha: prior successes α > 0.
        beta: prior failures β > 0.
        discount: λ in [0, 1].

    Raises:
        ValueError: parameters, ids or counts outside these ranges.
    """

    source: ClassVar[str] = "history"

    def __init__(self, alpha: float = 0.5, beta: float = 0.5, discount: float = 0.75) -> None:
        if not (0.0 < alpha < np.inf and 0.0 < beta < np.inf):
            raise ValueError(f"alpha is {alpha} and beta {beta}; both must be above 0 and finite.")
        if not 0.0 <= discount <= 1.0:
            raise ValueError(f"discount is {discount}; it must lie in [0, 1].")
        self.alpha, self.beta, self.discount = float(alpha), float(beta), float(discount)
        # One row per prompt, sorted by id.
        self._ids = np.empty(0, dtype=np.int64)
        self._successes = np.empty(0)
        self._failures = np.empty(0)
        self._known = np.empty(0, dtype=np.bool_)
        self._pending_trials = np.empty(0, dtype=np.int64)
        self._pending_successes = np.empty(0, dtype=np.int64)

    def estimate(self, ids: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(B,) estimates p̂ in (0, 1), and (B,) bool whether each rests on observations.

        A prompt without observations gets the prior mean α/(α + β).
        """
        rows, found = rows_of(integers("ids", ids), self._ids)
        p = np.full(len(rows), self.alpha / (self.alpha + self.beta))
        known = found.copy()
        rows = rows[found]
        successes, failures = self._successes[rows], self._failures[rows]
        p[found] = (self.alpha + successes) / (self.alpha + self.beta + successes + failures)
        known[found] = self._known[rows]
        return p, known

    def observe(self, ids: ArrayLike, trials: ArrayLike, successes: ArrayLike) -> None:
        """Add outcomes to the pending counts of the running epoch; repeated ids add up."""
        ids_ = integers("ids", ids)
        n, k = integers("trials", trials), integers("successes", successes)
        if not len(ids_) == len(n) == len(k):
            raise ValueError(
                f"ids, trials and successes have lengths {len(ids_)}, {len(n)} and {len(k)}; pass "
                "one of each per prompt."
            )
        wrong = (k < 0) | (k > n)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"prompt {ids_[row]} has {k[row]} successes in {n[row]} trials; count every "
                "response once, so that 0 ≤ successes ≤ trials."
            )
        self._make_rows(ids_)
        rows, _ = rows_of(ids_, self._ids)
        np.add.at(self._pending_trials, rows, n)
        np.add.at(self._pending_successes, rows, k)

    def end_epoch(self) -> None:
        """Discount the history, take in the pending counts, and freeze the new estimates."""
        failures = self._pending_trials - self._pending_successes
        self._successes = self.discount * self._successes + self._pending_successes
        self._failures = self.discount * self._failures + failures
        self._known = self._known | (self._pending_trials > 0)
        self._pending_trials = np.zeros_like(self._pending_trials)
        self._pending_successes = np.zeros_like(self._pending_successes)

    def state_dict(self) -> dict[str, Any]:
        """Parameters, history and pending counts as Python numbers and lists.

        Any serialiser keeps them to the last bit, `torch.load(weights_only=True)` and JSON too.
        """
        return {
            "alpha": self.alpha,
            "beta": self.beta,
            "discount": self.discount,
            "ids": self._ids.tolist(),
            "successes": self._successes.tolist(),
            "failures": self._failures.tolist(),
            "known": self._known.tolist(),
            "pending_trials": self._pending_trials.tolist(),
            "pending_successes": self._pending_successes.tolist(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a `state_dict`, its parameters included."""
        missing = sorted(self.state_dict().keys() - state.keys())
        if missing:
            raise ValueError(
                f"the state of a success history lacks {', '.join(missing)}; load one that "
                "DiscountedBeta.state_dict() wrote."
            )
        restored = DiscountedBeta(state["alpha"], state["beta"], state["discount"])
        self.alpha, self.beta, self.discount = restored.alpha, restored.beta, restored.discount
        self._ids = np.array(state["ids"], dtype=np.int64)
        self._successes = np.array(state["successes"], dtype=np.float64)
        self._failures = np.array(state["failures"], dtype=np.float64)
        self._known = np.array(state["known"], dtype=np.bool_)
        self._pending_trials = np.array(state["pending_trials"], dtype=np.int64)
        self._pending_successes = np.array(state["pending_successes"], dtype=np.int64)

    def _make_rows(self, ids: NDArray[np.int64]) -> None:
        new = np.setdiff1d(ids, self._ids)
        if len(new) == 0:
            return
        at = np.searchsorted(self._ids, new)
        self._ids = np.insert(self._ids, at, new)
        self._successes = np.insert(self._successes, at, 0.0)
        self._failures = np.insert(self._failures, at, 0.0)
        self._known = np.insert(self._known, at, False)
        self._pending_trials = np.insert(self._pending_trials, at, 0)
        self._pending_successes = np.insert(self._pending_successes, at, 0)
