"""Success probabilities that are known exactly."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.success.ids import integers


class Oracle:
    """Exact success probabilities, as in image classification (SERA, Appendix D.1).

    They are those that the task hands to `estimate`, or those that `probability` computes from the
    prompt ids. Outcomes teach it nothing.

    Args:
        probability: maps (B,) int64 ids to (B,) probabilities, where the task has none to hand in.

    Raises:
        ValueError: no probabilities at all, or probabilities outside [0, 1], NaN, or not one per
            id.
    """

    source: ClassVar[str] = "exact"
    needs_likelihood: ClassVar[bool] = True

    def __init__(self, probability: Callable[[NDArray[np.int64]], ArrayLike] | None = None) -> None:
        self._probability = probability

    def estimate(
        self, ids: ArrayLike, exact: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(B,) probabilities, all of them known."""
        ids_ = integers("ids", ids)
        p = exact if self._probability is None else self._probability(ids_)
        if p is None:
            raise ValueError(
                "the oracle was given no probabilities; pass exact=, or choose an estimate that "
                "learns from outcomes."
            )
        return _probabilities(p, len(ids_)).copy(), np.ones(len(ids_), dtype=np.bool_)

    def past(self, ids: ArrayLike) -> None:
        """None: it keeps no counts."""

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
