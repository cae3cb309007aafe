"""Whether a class label is the right one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from waterline.rewards.verifier import Judgement, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class LabelVerifier:
    """A label succeeds, with reward 1.0, when it equals the image's own."""

    responses: ClassVar[str] = "labels"
    answers: ClassVar[str] = "label"

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[np.bool_]
    ) -> Judgement:
        """Compare int64 labels (R,); a label is always complete. See ``Verifier``."""
        import numpy as np

        right, given = np.asarray(answers), np.asarray(responses)
        if right.shape != given.shape:  # they would broadcast
            raise ValueError(
                f"{len(right)} answers cannot judge {len(given)} responses; give one answer for"
                " each response."
            )
        # Whole arrays at once: a step of an image run judges tens of thousands of labels.
        success = right == given
        verdict = np.where(success, Verdict.correct.value, Verdict.wrong.value)
        return Judgement(success, success.astype(np.float64), verdict)
