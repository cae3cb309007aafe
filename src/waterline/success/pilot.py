"""Success estimates from a few rollouts of the current batch."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterline.success.ids import integers


def pilot_estimate(successes: ArrayLike, m: int) -> NDArray[np.float64]:
    """p̂ = clip(K/m, 1/16, 15/16) from K successes among m pilot rollouts (SERA, Table 3).

    Args:
        successes: (B,) integers K in [0, m].
        m: pilot rollouts of each prompt, at least 1.

    Raises:
        ValueError: m below 1, or a K outside [0, m].
    """
    k = integers("successes", successes)
    if m < 1:
        raise ValueError(f"m is {m}; a pilot needs at least 1 rollout per prompt.")
    if (k < 0).any() or (k > m).any():
        raise ValueError(f"a pilot of {m} rollouts has between 0 and {m} successes; check K.")
    return np.asarray(np.clip(k / m, 1 / 16, 15 / 16), dtype=np.float64)
