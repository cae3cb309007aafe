"""What every verifier gives: success, reward and verdict of each response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

# NumPy is imported where it is first used: `verify_math` runs in scripts, and its worker processes
# start, without loading it.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Verdict(StrEnum):
    """What a verifier says about a response; only ``correct`` is a success.

    ``wrong``: an answer was read and is not the right one. ``unparseable``: no answer could be
    read, or reading it was refused. ``timeout``: comparing it took too much time or memory.
    ``error``: the verifier failed, or the right answer cannot be read; a sign of bad data, not of a
    bad policy. ``capped``: the response reached the length limit, and the rule counts it as wrong.
    """

    correct = "correct"
    wrong = "wrong"
    unparseable = "unparseable"
    timeout = "timeout"
    error = "error"
    capped = "capped"


@dataclass(frozen=True, eq=False)
class Judgement:
    """The judgement on R responses, one row for each.

    Success is not reward: allocation, history and Pass@K read ``success``, advantages read
    ``reward``.

    Attributes:
        success: (R,) whether the response solves its prompt.
        reward: (R,) float64, what the policy is trained on; may be fractional.
        verdict: (R,) names of ``Verdict``.
    """

    success: NDArray[np.bool_]
    reward: NDArray[np.float64]
    verdict: NDArray[np.str_]


class Verifier(Protocol):
    """Judges responses; one that is in ``conf/rewards/`` can be chosen as ``rewards=<name>``.

    A verifier whose rewards may differ from 0 and 1 has a class attribute ``fractional = True``, so
    that an advantage that is not defined for them is refused before anything is trained. One with a
    class attribute ``answers`` is refused for a task whose answers are of another kind.
    """

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[np.bool_]
    ) -> Judgement:
        """Judge each response against the answer of its own prompt.

        Args:
            answers: (R,) what the task knows of the prompt that the response of the same index
                answers: for sequences ``Prompt.answer``, for labels an int64 array.
            responses: (R,) decoded texts, or an int64 array of labels.
            complete: (R,) whether the response ended by itself, not at the length limit.

        Raises:
            ValueError: There are not as many answers as responses.
        """


def judgement(verdicts: Sequence[str]) -> Judgement:
    """Success where the verdict is ``correct``, with reward 1.0; elsewhere 0.0."""
    import numpy as np

    verdict = np.array(verdicts, dtype=np.str_)
    success = verdict == Verdict.correct
    return Judgement(success, success.astype(np.float64), verdict)
