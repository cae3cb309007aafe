import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.utils import instantiate
from numpy.typing import NDArray
from omegaconf import OmegaConf

from waterline.rewards import (
    Judgement,
    LabelVerifier,
    MathVerifier,
    MazeVerifier,
    Verdict,
    Verifier,
    judgement,
    verify_math,
    verify_maze,
)
from waterline.tasks import MazeTask

CONF = Path(__file__).parents[2] / "conf" / "rewards"


def complete(n: int) -> NDArray[np.bool_]:
    return np.ones(n, dtype=bool)


def check(found: Judgement, verdicts: list[str]) -> None:
    right = [verdict == "correct" for verdict in verdicts]
    assert (found.success.dtype, found.reward.dtype) == (np.bool_, np.float64)
    assert found.verdict.dtype.kind == "U"
    assert found.success.shape == found.reward.shape == found.verdict.shape == (len(verdicts),)
    assert found.verdict.tolist() == verdicts
    assert found.success.tolist() == right
    assert found.reward.tolist() == [float(r) for r in right]


def test_success_and_reward_follow_from_the_verdicts() -> None:
    check(
        judgement(list(Verdict)), ["correct", "wrong", "unparseable", "timeout", "error", "capped"]
    )
    check(judgement([]), [])


def test_mazes() -> None:
    task = MazeTask(9, sft=0, train=3, dev=0, test=0)
    answers = [p.answer for p in task.splits["train"]]
    walk = task.tokenizer.decode(task.target(task.splits["train"][1]))
    responses = ["DONE", walk, "UP"]
    found = MazeVerifier()(answers, responses, complete(3))
    check(found, ["wrong", "correct", "unparseable"])
    assert found.success.tolist() == list(map(verify_maze, responses, answers))


def test_mathematics() -> None:
    golds = ["42", "42", "42", "", r"3\sqrt{2}"]
    responses = [r"\boxed{42}", "it is 41", "I give up.", "7", r"\boxed{2\sqrt{2}}"]
    pytest.importorskip("math_verify")
    found = MathVerifier()(golds, responses, complete(5))
    check(found, ["correct", "wrong", "unparseable", "error", "wrong"])
    assert found.verdict.tolist() == [v.verdict for v in map(verify_math, responses, golds)]


def test_labels() -> None:
    answers, responses = np.array([3, 1, 4, 1]), np.array([3, 1, 1, 4])
    found = LabelVerifier()(answers, responses, complete(4))
    check(found, ["correct", "correct", "wrong", "wrong"])


@pytest.mark.parametrize("verifier", [MazeVerifier(), MathVerifier(), LabelVerifier()])
def test_no_responses_and_missing_answers(verifier: Verifier) -> None:
    check(verifier([], [], complete(0)), [])
    with pytest.raises(ValueError, match=r"answers cannot judge|zip"):
        verifier([], ["1"], complete(1))


def test_a_step_of_labels_takes_about_a_millisecond() -> None:
    rng = np.random.default_rng(0)
    answers, responses = rng.integers(0, 256, (2, 32_768))
    verifier, seconds = LabelVerifier(), []
    for _ in range(20):
        start = time.perf_counter()
        found = verifier(answers, responses, complete(32_768))
        seconds.append(time.perf_counter() - start)
    assert found.success.sum() == (answers == responses).sum()
    assert min(seconds) < 0.005  # 0.3 ms when it was written


class Partial:
    """Half a point for the right number of words, more if it is complete; success when equal."""

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[np.bool_]
    ) -> Judgement:
        pairs = list(zip(answers, responses, strict=True))
        success = np.array([a == r for a, r in pairs], dtype=bool)
        near = np.array([len(a.split()) == len(r.split()) for a, r in pairs], dtype=bool)
        reward = np.where(success, 1.0, near * 0.5 + complete * 0.25)
        return Judgement(success, reward, np.where(success, "correct", "wrong"))


def test_a_fractional_reward_is_no_success() -> None:
    verifier: Verifier = Partial()
    ended = np.array([True, False, True, False])
    found = verifier(["a b"] * 4, ["a b", "b a", "b a", "a"], ended)
    assert found.reward.tolist() == [1.0, 0.5, 0.75, 0.0]
    assert found.success.tolist() == [True, False, False, False]
    assert found.verdict.tolist() == ["correct", "wrong", "wrong", "wrong"]


@pytest.mark.parametrize("name", ["maze", "math", "label"])
def test_the_configuration_names_them(name: str) -> None:
    kinds = {"maze": MazeVerifier, "math": MathVerifier, "label": LabelVerifier}
    assert isinstance(instantiate(OmegaConf.load(CONF / f"{name}.yaml")), kinds[name])
