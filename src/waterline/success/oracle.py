"""Success probabilities that are known exactly."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.success.protocol import SuccessEstimate, integers


class Oracle(SuccessEstimate):
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
        array = np.array(p, dtype=np.float64)
        if array.shape != ids_.shape or not np.all((array >= 0.0) & (array <= 1.0)):
            raise ValueError(
                f"the oracle gave {array} for {len(ids_)} ids; give each a probability in [0, 1]."
            )
        return array, np.ones(len(ids_), dtype=np.bool_)
