"""Gold answers: read once, checked when a data set is loaded."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from waterline.rewards.answers.answer import find_answer
from waterline.rewards.answers.choice import letter_of
from waterline.rewards.answers.exact import exact_number
from waterline.rewards.answers.hostile import MAX_LENGTH, is_hostile
from waterline.rewards.answers.latex import boxes, simplify
from waterline.rewards.answers.parts import Parts, parts_of
from waterline.rewards.answers.prose import find_list, is_bare
from waterline.rewards.answers.symbols import plain_characters
from waterline.rewards.answers.words import words_of

_DELIMITER = re.compile(r"(?<!\\)(?:\$|\\[(\[])|####")
_ANNOUNCED = re.compile(r"\banswer\s*(?:is|are|:|=)+\s*", re.IGNORECASE)
_QUOTED_LIST = re.compile(r"\s*\[\s*(?:'|\").*\]\s*", re.DOTALL)
_DANGLING = re.compile(r"(?:[-+*/^_=<>(\[{,]|\\(?:frac|sqrt|cdot|times|left|pm))\s*$")
_EMPTY = re.compile(r"\\(?:frac|sqrt)\s*(?:\{[^{}]*\})?\s*\{\s*\}")


@dataclass(frozen=True, slots=True)
class Gold:
    """What a response is compared with.

    ``text`` is the expression; ``parts`` what it consists of when there are several; ``choice``
    the letter of a multiple choice; ``words`` an answer in words. None or '' where it is none.
    ``hostile`` says that computing with it could take unbounded time: only its own text matches.
    """

    text: str
    parts: Parts | None
    choice: str | None
    words: str
    hostile: bool

    @property
    def count(self) -> int:
        """The number of answers that it holds: those behind a ± are two."""
        return (len(self.parts.items) if self.parts else 1) * (2 if r"\pm" in self.text else 1)


def read_gold(gold: str | Sequence[str]) -> tuple[Gold, ...]:
    r"""The alternatives of a gold answer, of which a response has to give one.

    A text is one alternative: an answer, bare, in ``\boxed{}`` or ``$ $`` or at the end of a
    solution. A sequence of texts, or a text that spells one (``['4', '8']``), holds several; those
    that are empty are left out.

    Raises:
        ValueError: There is none, or one cannot be read; the message says what is wrong with it.
    """
    if isinstance(gold, str):
        quoted = _spelled_list(gold)
        if quoted is None:
            return (_read(gold),)
        gold = quoted
    if not isinstance(gold, Sequence) or not all(isinstance(text, str) for text in gold):
        raise ValueError(f"a gold answer is a text or a list of texts, not {gold!r:.80}")
    filled = [text for text in gold if text.strip() not in ("", r"\boxed{}")]
    if not filled:
        raise ValueError("the list of gold answers holds none")
    return tuple(_read(text) for text in filled)


def check_gold(gold: str | Sequence[str]) -> None:
    """Raise ValueError, with a sentence that says why, when no response could be judged by it."""
    read_gold(gold)


def _spelled_list(text: str) -> list[str] | None:
    if not _QUOTED_LIST.fullmatch(text):
        return None
    try:
        found = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(t, str) for t in found) else None


@lru_cache(maxsize=65_536)
def _read(gold: str) -> Gold:
    text = _expression(plain_characters(gold).strip())
    shown = f"the gold answer {gold!r:.80}"
    if not text or not re.search(r"\w|∞|∅|\\emptyset|\\infty", text):
        raise ValueError(f"{shown} holds no answer that can be read")
    exact = exact_number(text)
    if exact is None:
        if len(text) > MAX_LENGTH:
            raise ValueError(
                f"{shown} has {len(text)} characters; at most {MAX_LENGTH} are compared"
            )
        plain = simplify(text)
        braces = re.sub(r"\\[{}]", "", plain)
        if braces.count("{") != braces.count("}") or (
            plain.count(r"\begin") != plain.count(r"\end")
        ):
            raise ValueError(f"{shown} has a brace or an environment that is not closed")
        if _DANGLING.search(plain) or _EMPTY.search(plain):
            raise ValueError(f"{shown} is not a whole expression")
    hostile = exact is None and is_hostile(simplify(text))
    return Gold(text, parts_of(text), letter_of(text), words_of(text), hostile)


def _expression(text: str) -> str:
    """The expression in boxes, in mathematics, behind 'answer is', or the whole."""
    if boxes(text) != []:
        found = find_answer(text)
        return found.text if found else ""
    if is_bare(text) or exact_number(text):
        return text
    listed = find_list(text)
    if listed:
        return listed
    announced = list(_ANNOUNCED.finditer(text))
    if announced and not _DELIMITER.search(text):
        rest = text[announced[-1].end() :].strip().rstrip(".")
        # Words that are announced as an answer are one only when they are one word or a choice.
        known = is_bare(rest) or exact_number(rest) or letter_of(rest) or " " not in rest
        return rest if known else ""
    found = find_answer(text) if _DELIMITER.search(text) else None
    return found.text if found else text
