"""Success probabilities that are known exactly."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.success.ids import integers, rows_of


class Oracle:
    """Exact success probabilities, as in image classification (SERA, Appendix D.1).

    Either `probability` computes them from the prompt ids, or `set` hands in those of the
    current batch before `estimate`. Outcomes teach it nothing.

    Args:
        probability: maps (B,) int64 ids to (B,) probabilities; None when `set` is used.

    Raises:
        ValueError: probabilities outside [0, 1], NaN, or not one per id.
    """

    source: ClassVar[str] = "exact"

    def __init__(self, probability: Callable[[NDArray[np.int64]], ArrayLike] | None = None) -> None:
        self._probability = probability
        self._ids = np.empty(0, dtype=np.int64)
        self._p = np.empty(0)

    def set(self, ids: ArrayLike, p: ArrayLike) -> None:
        """Hand in the probabilities of a batch; they replace those of the batch before."""
        ids_ = integers("ids", ids)
        p_ = _probabilities(p, len(ids_))
        self._ids, first = np.unique(ids_, return_index=True)
        self._p = p_[first]

    def estimate(self, ids: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(B,) probabilities, and (B,) bool: False, with probability 0.5, where none was set."""
        ids_ = integers("ids", ids)
        if self._probability is not None:
            p = _probabilities(self._probability(ids_), len(ids_))
            return p.copy(), np.ones(len(ids_), dtype=np.bool_)
        rows, known = rows_of(ids_, self._ids)
        p = np.full(len(ids_), 0.5)
        p[known] = self._p[rows[known]]
        return p, known

    def observe(self, ids: ArrayLike, trials: ArrayLike, successes: ArrayLike) -> None:
        """Nothing to learn."""

    def end_epoch(self) -> None:
        """Nothing to close."""

    def state_dict(self) -> dict[str, Any]:
        """Empty: each batch brings its own probabilities."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""


def _probabilities(p: ArrayLike, batch: int) -> NDArray[np.float64]:
    array = np.asarray(p, dtype=np.float64)
    if array.shape != (batch,):
        raise ValueError(
            f"the oracle gave probabilities of shape {array.shape} for {batch} ids; give one each."
        )
    if not np.all((array >= 0.0) & (array <= 1.0)):
        raise ValueError("the oracle gave a probability outside [0, 1] or NaN; check its model.")
    return array
