"""Whether a response gives the right answer to a mathematical question."""

import os
import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

from waterline.rewards.answer import Candidate, find_answer, find_choice, find_list, is_bare
from waterline.rewards.exact import exact_number, read_numbers, same_number
from waterline.rewards.latex import boxes, plain_words, simplify
from waterline.rewards.refusal import MAX_LENGTH, is_hostile
from waterline.rewards.verdict import Verdict
from waterline.rewards.worker_pool import WorkerPool

_DOTS = re.compile(r"\\[ldc]?dots(?![a-zA-Z])|\.\.\.|…")
_DELIMITER = re.compile(r"(?<!\\)(?:\$|\\[(\[])|####")
_FUNCTION = re.compile(r"(?<![\\a-zA-Z])(exp|sqrt|sin|cos|tan|log|ln)(?=\s*\()")
_pool: WorkerPool | None = None
_pool_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class MathVerdict:
    """The verdict, and the answer it was given on (None when none was found)."""

    verdict: Verdict
    extracted: str | None


def default_workers() -> int:
    """How many workers verify at once: one for each processor, up to 4."""
    return min(4, os.cpu_count() or 1)


def _default_pool() -> WorkerPool:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = WorkerPool(default_workers())
        return _pool


def _are_texts(*values: object) -> bool:
    return all(isinstance(value, str) for value in values)


@lru_cache(maxsize=65_536)
def _read_gold(gold: str) -> str:
    """The gold answer's expression: the content of its boxes, or of its mathematics, or itself."""
    if boxes(gold):
        found = find_answer(gold)
        return found.text if found else ""
    text = gold.strip()
    if is_bare(text) or exact_number(text):
        return text
    listed = find_list(text)
    if listed:
        return listed
    found = find_answer(text) if _DELIMITER.search(text) else None
    return found.text if found else text


def verify_math(response: str, gold: str) -> MathVerdict:
    r"""Judge the answer of ``response`` against ``gold``.

    One answer is taken from the response (see ``find_answer``): the last ``\boxed{…}``, else what
    follows ``####``, 'answer is', or the last mathematics or number; a box is not required. Numbers
    are compared as exact rationals (see ``same_number``). What could take unbounded time is
    refused (``unparseable``). The rest goes to Math-Verify in a process of its own, which is killed
    after 2 s and fails beyond 2 GiB of memory (``timeout``). ``gold`` is an answer,
    bare or in ``\boxed{}`` or ``$ $``; when it cannot be read, the verdict is ``error``.

    Works from a script without a main guard, a thread and a notebook; it needs the package
    ``math-verify`` for answers that are not numbers.

    Source: the grader of the mathematical tasks of MaxRL and SERA is Math-Verify; this one differs
    where Math-Verify accepts wrong answers (tiny numbers, mixed numbers, other units or bases,
    enumerations with dots), and takes one candidate where Math-Verify may try several.
    """
    expected = _read_gold(gold) if _are_texts(response, gold) else ""
    if not expected:
        return MathVerdict(Verdict.error, None)
    choice = re.fullmatch(r"\(?([A-Z])\)?", plain_words(expected))
    found = find_answer(response)
    if choice and (found is None or not found.marked):
        letter = find_choice(response)
        if letter is None:
            return MathVerdict(Verdict.unparseable, None)
        return MathVerdict(Verdict.correct if letter == choice[1] else Verdict.wrong, letter)
    if found is None:
        return MathVerdict(Verdict.unparseable, None)
    return MathVerdict(_judge(expected, found), found.text[:MAX_LENGTH])


def verify_math_many(responses: Sequence[str], golds: Sequence[str]) -> list[MathVerdict]:
    """``verify_math`` for each response and the gold answer beside it, several at once."""
    with ThreadPoolExecutor(default_workers()) as threads:
        return list(threads.map(verify_math, responses, golds, chunksize=16))


def _judge(expected: str, found: Candidate) -> Verdict:
    if len(found.text) > MAX_LENGTH:
        return Verdict.unparseable
    gold, answer = read_numbers(expected, found.text)
    if gold and answer:
        return Verdict.correct if same_number(gold, answer) else Verdict.wrong
    same = plain_words(expected) == plain_words(found.text)
    if same:
        return Verdict.correct
    if is_hostile(simplify(found.text)):
        return Verdict.unparseable
    if _DOTS.search(expected) or _DOTS.search(found.text):
        return Verdict.wrong  # Math-Verify would compare what the dots leave
    if gold and gold.base:
        return Verdict.wrong  # Math-Verify would ignore the base
    return Verdict(
        _default_pool().ask(
            _for_math_verify(expected, found.text), _for_math_verify(found.text, expected)
        )
    )


def _for_math_verify(text: str, other: str) -> str:
    text = _FUNCTION.sub(r"\\\1", simplify(text))
    # An angle in degrees beside one in radians is converted; elsewhere the sign is a unit.
    if "°" in text:
        text = text.replace("°", r"\cdot\frac{\pi}{180}" if r"\pi" in simplify(other) else "")
    return r"\boxed{" + text.replace("%", r"\%") + "}"
