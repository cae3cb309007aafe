"""Verifiers whose reward is not the success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterline.rewards import Judgement, LabelVerifier, MazeVerifier, Verdict, judgement


class HalfForAWalk:
    """A maze is solved as ever; a well-formed walk that does not get there has reward 0.5."""

    fractional = True

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[np.bool_]
    ) -> Judgement:
        found = MazeVerifier()(answers, responses, complete)
        reward = np.where(found.verdict == Verdict.wrong, 0.5, found.reward)
        return Judgement(found.success, reward, found.verdict)


class NearLabel:
    """A label is right or wrong as ever; reward 1/(1 + distance) to the right one."""

    fractional = True

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[np.bool_]
    ) -> Judgement:
        found = LabelVerifier()(answers, responses, complete)
        distance = np.abs(np.asarray(answers) - np.asarray(responses))
        return Judgement(found.success, 1.0 / (1.0 + distance), found.verdict)


class EvenLength:
    """A response of an even number of words succeeds: about half of them, whatever they say."""

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[np.bool_]
    ) -> Judgement:
        return judgement(["wrong" if len(r.split()) % 2 else "correct" for r in responses])
