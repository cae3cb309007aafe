"""``eval/probabilities.parquet``: the exact success probability of each prompt."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterline.evaluation.step_table import StepTable


class ProbabilityStore(StepTable):
    """Rows (step, split, prompt, p, top1) of tasks whose success probability is known.

    ``p`` is the policy's probability of a correct response: exact Pass@K for any K
    (:func:`exact_pass_at_k`). ``top1`` tells whether the likeliest response is correct.
    """

    values: ClassVar[dict[str, str]] = {"p": "float64", "top1": "bool"}

    def write(
        self,
        step: int,
        split: str,
        prompt: NDArray[np.int64],
        p: NDArray[np.float64],
        top1: NDArray[np.bool_],
    ) -> None:
        """Adds or replaces rows."""
        self.add(
            pd.DataFrame({"step": step, "split": split, "prompt": prompt, "p": p, "top1": top1})
        )
