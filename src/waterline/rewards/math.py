"""Whether a response gives the right answer to a mathematical question."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from waterline.rewards.answer import Candidate, find_answer
from waterline.rewards.choice import find_choice, letter_of
from waterline.rewards.exact import exact_number, read_numbers, same_number
from waterline.rewards.latex import boxes, plain_words, simplify
from waterline.rewards.prose import find_list, is_bare
from waterline.rewards.symbols import plain_characters
from waterline.rewards.verifier import Judgement, Verdict, judgement
from waterline.rewards.workers import WorkerPool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_LENGTH = 300
_MAX_DIGITS = 80
_MAX_EXPONENT = 1_000
_DOTS = re.compile(r"\\[ldc]?dots(?![a-zA-Z])|\.\.\.|…")
_DELIMITER = re.compile(r"(?<!\\)(?:\$|\\[(\[])|####")
_FUNCTION = re.compile(r"(?<![\\a-zA-Z])(exp|sqrt|sin|cos|tan|log|ln)(?=\s*\()")
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


@lru_cache(maxsize=65_536)
def _read_gold(gold: str) -> str:
    """The gold answer's expression: the content of its boxes, or of its mathematics, or itself."""
    text = plain_characters(gold).strip()
    if boxes(text) != []:
        found = find_answer(text)
        return found.text if found else ""
    if is_bare(text) or exact_number(text):
        return text
    listed = find_list(text)
    if listed:
        return listed
    found = find_answer(text) if _DELIMITER.search(text) else None
    return found.text if found else text


def verify_math(response: str, gold: str, complete: bool = True) -> MathVerdict:
    r"""Judge the answer of ``response`` against ``gold``.

    One answer is taken from the response (see ``find_answer``): the last ``\boxed{…}``, else what
    follows ``####``, 'answer is', or the last mathematics or number; a box is not required. It must
    be final: a box or thinking that is begun again and never closed leaves no answer, and of a
    response that is not ``complete``, ended by the length limit, only a marked answer counts.
    Numbers are compared as exact rationals (see ``same_number``). What could take unbounded time is
    refused (``unparseable``). The rest goes to Math-Verify in a process of its own, which is killed
    after 2 s and fails beyond 2 GiB of memory (``timeout``). ``gold`` is an answer,
    bare or in ``\boxed{}`` or ``$ $``; when it cannot be read, the verdict is ``error``.

    Works from a script without a main guard, a thread and a notebook; it needs the package
    ``math-verify`` for answers that are not numbers.

    Source: the grader of the mathematical tasks of MaxRL and SERA is Math-Verify; this one differs
    where Math-Verify accepts wrong answers (tiny numbers, mixed numbers, other units or bases,
    enumerations with dots, bounds), and takes one candidate where Math-Verify may try several.
    """
    texts = isinstance(response, str) and isinstance(gold, str)
    expected = _read_gold(gold) if texts else ""
    if not expected:
        return MathVerdict(Verdict.error, None)
    found = find_answer(response, complete)
    choice = letter_of(expected)
    if choice and complete and not (found and found.marked):
        letter = find_choice(response)
        if letter is None:
            return MathVerdict(Verdict.unparseable, None)
        return MathVerdict(Verdict.correct if letter == choice else Verdict.wrong, letter)
    if found is None:
        return MathVerdict(Verdict.unparseable, None)
    if choice and (letter := letter_of(found.text)):
        verdict = Verdict.correct if letter == choice else Verdict.wrong
    else:
        verdict = _judge(expected, found)
    return MathVerdict(verdict, found.text[:_MAX_LENGTH])


def verify_math_many(
    responses: Sequence[str], golds: Sequence[str], complete: Iterable[bool] | None = None
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
    """Judges answers to mathematical questions: see ``verify_math``."""

    responses: ClassVar[str] = "sequences"
    answers: ClassVar[str] = "math"

    def __call__(
        self, answers: Sequence[Any], responses: Sequence[Any], complete: NDArray[np.bool_]
    ) -> Judgement:
        """``answers`` are gold answers. A cut-off response counts if its answer was marked."""
        ended = [bool(whole) for whole in complete]
        return judgement([v.verdict for v in verify_math_many(responses, answers, ended)])


def _judge(expected: str, found: Candidate) -> Verdict:
    if len(found.text) > _MAX_LENGTH:
        return Verdict.unparseable
    gold, answer = read_numbers(expected, found.text)
    if gold and answer:
        return Verdict.correct if same_number(gold, answer) else Verdict.wrong
    if plain_words(expected) == plain_words(found.text):
        return Verdict.correct
    if is_hostile(simplify(found.text)):
        return Verdict.unparseable
    if _DOTS.search(expected) or _DOTS.search(found.text):
        return Verdict.wrong  # Math-Verify would compare what the dots leave
    if gold and (gold.base or _RELATION.search(simplify(found.text))):
        return Verdict.wrong  # Math-Verify would ignore the base, and some relations
    return Verdict(
        _pool.ask(_for_math_verify(expected, found.text), _for_math_verify(found.text, expected))
    )


def _for_math_verify(text: str, other: str) -> str:
    text = _FUNCTION.sub(r"\\\1", simplify(text)).replace("$", "")
    text = _TWO.sub(r"\1", text)
    if _APART.fullmatch(text):
        text = ", ".join(text.split())
    # Degrees are converted where the other answer is in radians; elsewhere the sign is a unit.
    if "°" in text:
        text = text.replace("°", r"\cdot\frac{\pi}{180}" if r"\pi" in simplify(other) else "")
    return r"\boxed{" + text.replace("%", r"\%") + "}"


def is_hostile(text: str) -> bool:
    r"""Whether computing with ``text`` could take unbounded time or memory.

    More than 300 characters or 80 digits; a factorial; a power within an exponent or a limit (as in
    towers, and in sums up to 10⁹); an exponent or limit of more than 1,000; brackets nested more
    than 12 deep.
    """
    if len(text) > _MAX_LENGTH or sum(c.isdigit() for c in text) > _MAX_DIGITS:
        return True
    if "\0" in text or re.search(r"(?<![\\!])!(?!=)|\\(?:bmod|pmod|mod)(?![a-zA-Z])", text):
        return True
    raised: list[bool] = []  # for each open bracket, whether it is an exponent
    powers = 0
    for i, c in enumerate(text):
        if c in "{([":
            raised.append(bool(re.search(r"(?:\^|\*\*)\s*$", text[:i])))
            if len(raised) > 12:
                return True
        elif c in "})]":
            if raised:
                raised.pop()
        elif c == "^" or text.startswith("**", i):
            if any(raised) or re.search(r"(?:\^|\*\*)\s*[-+]?(?:\w|\\[a-zA-Z]+)\s*$", text[:i]):
                return True
            powers += 1
    if powers > 24:
        return True
    exponents = re.findall(r"(?:\^|\*\*|(?<=\d)[eE])\s*[{(]?\s*[-+]?([\d,]+)", text)
    return any(int(e.replace(",", "") or 0) > _MAX_EXPONENT for e in exponents)
