"""Success estimates from the history of each prompt, without a rollout of the current batch."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.success.protocol import SuccessEstimate, integers

# The table of a history: one row per prompt, sorted by id.
_COLUMNS: dict[str, type[np.generic]] = {
    "ids": np.int64,
    "successes": np.float64,
    "failures": np.float64,
    "known": np.bool_,
    "pending_trials": np.int64,
    "pending_successes": np.int64,
}


class DiscountedBeta(SuccessEstimate):
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
        for name, value in (("alpha", alpha), ("beta", beta)):
            if not 0.0 < value < np.inf:
                raise ValueError(f"{name}={value}: must be a number above 0.")
        if not 0.0 <= discount <= 1.0:
            raise ValueError(f"discount={discount}: must be a number from 0 to 1.")
        self.alpha, self.beta, self.discount = float(alpha), float(beta), float(discount)
        self._table = {name: np.empty(0, dtype=kind) for name, kind in _COLUMNS.items()}

    def estimate(
        self, ids: ArrayLike, exact: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(B,) estimates p̂ in (0, 1), and (B,) bool whether each rests on observations.

        A prompt without observations gets the prior mean α/(α + β). `exact` is not read.
        """
        successes, failures, known = self._rows(ids, "successes", "failures", "known")
        p = (self.alpha + successes) / (self.alpha + self.beta + successes + failures)
        return p, known

    def past(self, ids: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(B,) discounted responses S + F and successes S of earlier epochs, 0 where none."""
        successes, failures = self._rows(ids, "successes", "failures")
        return successes + failures, successes

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
        table = self._table
        new = np.setdiff1d(ids_, table["ids"])
        at = np.searchsorted(table["ids"], new)
        for name in _COLUMNS:
            table[name] = np.insert(table[name], at, new if name == "ids" else 0)
        rows = np.searchsorted(table["ids"], ids_)
        np.add.at(table["pending_trials"], rows, n)
        np.add.at(table["pending_successes"], rows, k)

    def end_epoch(self) -> None:
        """Discount the history, take in the pending counts, and freeze the new estimates."""
        table = self._table
        trials, successes = table["pending_trials"], table["pending_successes"]
        table["successes"] = self.discount * table["successes"] + successes
        table["failures"] = self.discount * table["failures"] + (trials - successes)
        table["known"] = table["known"] | (trials > 0)
        for name in ("pending_trials", "pending_successes"):
            table[name] = np.zeros_like(trials)

    def state_dict(self) -> dict[str, Any]:
        """Parameters, history and pending counts as Python numbers and lists.

        Any serialiser keeps them to the last bit, `torch.load(weights_only=True)` and JSON too.
        """
        parameters = {"alpha": self.alpha, "beta": self.beta, "discount": self.discount}
        return {**parameters, **{name: column.tolist() for name, column in self._table.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a `state_dict`, its parameters included."""
        missing = sorted(self.state_dict().keys() - state.keys())
        if missing:
            raise ValueError(
                f"the state of a success history has no {', '.join(missing)}; load one that "
                "DiscountedBeta.state_dict() wrote."
            )
        DiscountedBeta.__init__(self, state["alpha"], state["beta"], state["discount"])
        self._table = {name: np.array(state[name], kind) for name, kind in _COLUMNS.items()}

    def _rows(self, ids: ArrayLike, *names: str) -> tuple[NDArray[Any], ...]:
        """The columns `names` at the prompts `ids` (B,), 0 at those without a row."""
        ids_, held = integers("ids", ids), self._table["ids"]
        rows = np.searchsorted(held, ids_)
        found = rows < len(held)
        found[found] = held[rows[found]] == ids_[found]
        columns = tuple(np.zeros(len(ids_), dtype=_COLUMNS[name]) for name in names)
        for name, column in zip(names, columns, strict=True):
            column[found] = self._table[name][rows[found]]
        return columns
