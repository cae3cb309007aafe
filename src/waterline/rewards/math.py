"""Whether a response gives the right answer to a mathematical question."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from waterline.rewards.answers.answer import Candidate, find_answer
from waterline.rewards.answers.choice import find_choice, letter_of
from waterline.rewards.answers.dropped import changes
from waterline.rewards.answers.exact import read_numbers, same_number
from waterline.rewards.answers.gold import Gold, check_gold, read_gold
from waterline.rewards.answers.hostile import MAX_LENGTH, is_hostile
from waterline.rewards.answers.latex import plain_words, simplify, spelled_out
from waterline.rewards.answers.parts import interval_of, parts_of, same_parts
from waterline.rewards.answers.words import find_words, says, words_of
from waterline.rewards.verifier import Judgement, Verdict, judgement
from waterline.rewards.workers import WorkerPool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_RESPONSE = 1_000_000
_DOTS = re.compile(r"\\[ldc]?dots(?![a-zA-Z])|\.\.\.|…")
_RELATION = re.compile(r"[<>]|\\(?:[lg]t|[lg]eq?|[lg]eqslant|neq?)(?![a-zA-Z])")
# Numbers with a blank between them are several; text that holds a second answer is no unit.
_APART = re.compile(r"-?[\d.]+(?:\s+-?[\d.]+)+")
_TWO = re.compile(r"\\text\s*\{([^{}]*(?:\d|\bor\b|\band\b)[^{}]*)\}")
# No process is started before an answer needs one, nor is one inherited by a forked child.
_workers = min(4, os.cpu_count() or 1)
_pool = WorkerPool(_workers)


@dataclass(frozen=True, slots=True)
class MathVerdict:
    """The verdict, and the answer it was given on (None when none was found)."""

    verdict: Verdict
    extracted: str | None


def verify_math(response: str, gold: str | Sequence[str], complete: bool = True) -> MathVerdict:
    r"""Judge the answer of ``response`` against ``gold``.

    One answer is taken from the response (see ``find_answer``): the last ``\boxed{…}``, else what
    follows ``####``, 'answer is', or the last mathematics or number; a box is not required. It must
    be final: a box or thinking that is begun again and never closed leaves no answer, and of a
    response that is not ``complete``, ended by the length limit, only a marked answer counts.
    Where ``gold`` has several parts, several boxes may hold them.

    Numbers are compared as exact rationals (see ``same_number``), points, intervals and lists of
    them part by part (see ``same_parts``). What could take unbounded time is refused
    (``unparseable``), as is a response of more than a million characters. The rest goes to
    Math-Verify in a process of its own, which ends after 2 s of processor time or beyond 2 GiB of
    memory (``timeout``).

    ``gold`` is an answer, bare or in ``\boxed{}`` or ``$ $``, in mathematics, a letter or words, or
    several of which one has to be given (see ``read_gold``); when it cannot be read, the verdict is
    ``error``. ``docs/answers.md`` has the whole policy in one table.

    Works from a script without a main guard, a thread and a notebook; it needs the package
    ``math-verify`` for answers that are not numbers.

    Source: the grader of the mathematical tasks of MaxRL and SERA is Math-Verify; this one differs
    where Math-Verify accepts wrong answers (tiny numbers, mixed numbers, other units or bases,
    enumerations with dots, bounds), and takes one candidate where Math-Verify may try several.
    """
    try:
        golds = read_gold(gold)
    except ValueError:
        return MathVerdict(Verdict.error, None)
    text: object = response  # a data set may hold anything
    if not isinstance(text, str):
        return MathVerdict(Verdict.error, None)
    if len(response) > _MAX_RESPONSE:
        return MathVerdict(Verdict.unparseable, None)
    found = MathVerdict(Verdict.unparseable, None)
    for expected in golds:
        found = _verify(response, expected, complete)
        if found.verdict == Verdict.correct:
            break
    return found


def _verify(response: str, expected: Gold, complete: bool) -> MathVerdict:
    found = find_answer(response, complete, expected.count)
    if complete and not (found and found.marked):
        if expected.choice:
            letter = find_choice(response)
            if letter is None:
                return MathVerdict(Verdict.unparseable, None)
            right = letter == expected.choice
            return MathVerdict(Verdict.correct if right else Verdict.wrong, letter)
        if expected.words and (said := find_words(response, expected.words)) is not None:
            return MathVerdict(Verdict.correct if said else Verdict.wrong, expected.words)
    if found is None:
        return MathVerdict(Verdict.unparseable, None)
    if expected.choice and (letter := letter_of(found.text)):
        verdict = Verdict.correct if letter == expected.choice else Verdict.wrong
    else:
        verdict = _judge(expected, found)
    return MathVerdict(verdict, found.text[:MAX_LENGTH])


def verify_math_many(
    responses: Sequence[str],
    golds: Sequence[str | Sequence[str]],
    complete: Iterable[bool] | None = None,
) -> list[MathVerdict]:
    """``verify_math`` for each response and the gold answer of the same index, several at once.

    Raises ValueError when there are not as many responses as gold answers.
    """
    ended = [True] * len(responses) if complete is None else complete
    cases = zip(responses, golds, ended, strict=True)
    # Threads suffice: they wait for the workers, which are processes.
    with ThreadPoolExecutor(_workers) as threads:
        return list(threads.map(lambda case: verify_math(*case), cases))


class MathVerifier:
    """Judges answers to mathematical questions: see ``verify_math``.

    Args:
        max_length_is_wrong: whether a response that reached the length limit is ``capped``,
            whatever it says. Otherwise it counts if its answer was marked.
    """

    responses: ClassVar[str] = "sequences"
    answers: ClassVar[str] = "math"

    check_answer = staticmethod(check_gold)
    """Raises ValueError for a right answer by which nothing could be judged."""

    def __init__(self, max_length_is_wrong: bool = False) -> None:
        self.max_length_is_wrong = max_length_is_wrong

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[np.bool_]
    ) -> Judgement:
        """``answers`` are gold answers."""
        ended = [bool(whole) for whole in complete]
        if not self.max_length_is_wrong:
            return judgement([v.verdict for v in verify_math_many(responses, answers, ended)])
        cases = zip(responses, answers, ended, strict=True)
        whole = [(response, gold) for response, gold, end in cases if end]
        told = iter(verify_math_many([r for r, _ in whole], [g for _, g in whole]))
        return judgement([next(told).verdict if end else Verdict.capped for end in ended])


def _judge(expected: Gold, found: Candidate) -> Verdict:
    if len(found.text) > MAX_LENGTH:
        return Verdict.unparseable
    gold, answer = read_numbers(expected.text, found.text)
    if gold and answer:
        return Verdict.correct if same_number(gold, answer) else Verdict.wrong
    if plain_words(expected.text) == plain_words(found.text):
        return Verdict.correct
    if expected.words and (
        words_of(found.text) == expected.words or says(spelled_out(found.text), expected.words)
    ):
        return Verdict.correct
    plain = simplify(found.text)
    if expected.hostile or is_hostile(plain):
        return Verdict.unparseable
    if " " in expected.words:
        return Verdict.wrong  # Math-Verify would read a product of letters
    if changes(expected.text, found.text):
        return Verdict.wrong
    parts = parts_of(found.text) or (expected.parts and interval_of(found.text))
    wanted = expected.parts or (parts and interval_of(expected.text))
    if wanted and parts:
        same = same_parts(wanted, parts)
        if same is not None:
            return Verdict.correct if same else Verdict.wrong
    elif (wanted and (answer or re.search(r",0\d", plain))) or (parts and gold):
        return Verdict.wrong  # several answers and a number
    if _DOTS.search(expected.text) or _DOTS.search(found.text):
        return Verdict.wrong  # Math-Verify would compare what the dots leave
    if gold and (gold.base or _RELATION.search(plain)):
        return Verdict.wrong  # Math-Verify would ignore the base, and some relations
    texts = _for_math_verify(expected.text, found.text), _for_math_verify(found.text, expected.text)
    return Verdict(_pool.ask(*texts))


def _for_math_verify(text: str, other: str) -> str:
    text = _TWO.sub(r"\1", simplify(text).replace("$", ""))
    if _APART.fullmatch(text):
        text = ", ".join(text.split())
    # Degrees are converted where the other answer is in radians; elsewhere the sign is a unit.
    if "°" in text:
        text = text.replace("°", r"\cdot\frac{\pi}{180}" if r"\pi" in simplify(other) else "")
    return r"\boxed{" + text.replace("%", r"\%") + "}"
