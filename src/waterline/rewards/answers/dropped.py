"""What a comparison by value would leave out, though it makes another answer."""

import re
from collections import Counter

from waterline.rewards.answers.exact import exact_number, same_number
from waterline.rewards.answers.latex import simplify, spelled_out
from waterline.rewards.answers.parts import parts_of

# Signs on a letter or number that Math-Verify does not read.
_MARK = re.compile(
    r"(?:'|\\prime(?![a-zA-Z]))|\\(?:wide)?(?:hat|bar|tilde)(?![a-zA-Z])"
    r"|\\(?:not|neg|lnot)(?![a-zA-Z])|\^\s*\{?\s*(?:T|\\top|\\intercal)\s*\}?(?![a-zA-Z])"
)
# Words that are no unit: they change the number before them, or say that it is none.
_CHANGING = re.compile(
    r"\b(?:hundreds?|dozens?|k|(?:ten|hundred|thousand|million)ths?|per\s*mille|squared|cubed"
    r"|factorial|mod(?:ulo)?|wrong|incorrect|false|not|never|negative|minus|plus|half\s+of|twice"
    r"|at\s+(?:least|most)|(?:more|less|fewer|greater)\s+than|root)\b",
    re.IGNORECASE,
)
_EQUALS = re.compile(r"(?<![<>!:\\=])=(?!=)")
_INDEX = r"(?:_(?:\{[^{}]*\}|\w))?"
# What may be given a value: a letter with its index, a function of something, words, a point.
_NAME = re.compile(
    rf"\s*(?:\\[a-zA-Z]+\s*)*(?:[A-Za-z]{_INDEX}\s*(?:\([^()]*\))?|\([^()]*\)|\\text\w*\{{[^{{}}]*\}}|\s)*"
)
_LETTER = re.compile(r"\\([a-zA-Z]+)|([A-Za-z])")
_WORD = re.compile(r"[A-Z]{2}|[A-Za-z]{3,}")


def changes(gold: str, answer: str) -> bool:
    r"""Whether ``answer`` holds, or lacks, what would make it another answer than ``gold``.

    Signs on a letter (``f'``, ``\hat x``, ``A^T``, ``\not=``); words that change a number (``5``
    hundred, squared, at least 5); capital for small letters, or the letters of a word in another
    order; an equation that is not true (``2 + 3 = 6``) or not solved (``2x = 5``).
    """
    gold, answer = simplify(gold), simplify(answer)
    sides = [_EQUALS.split(text) for text in (gold, answer)]
    values = [side[-1] for side in sides] if len(sides[0]) != len(sides[1]) else [gold, answer]
    if _marks(values[0]) != _marks(values[1]):
        return True
    if _words(gold) != _words(answer):
        return True
    if _other_letters(values[0], values[1]):
        return True
    return 1 == len(sides[0]) < len(sides[1]) and not parts_of(answer) and not _states(sides[1])


def _marks(text: str) -> Counter[str]:
    return Counter(re.sub(r"[\s{}]|wide", "", mark) for mark in _MARK.findall(text))


def _words(text: str) -> Counter[str]:
    return Counter(word.casefold() for word in _CHANGING.findall(spelled_out(text)))


def _other_letters(gold: str, answer: str) -> bool:
    words = spelled_out(gold), spelled_out(answer)
    if all(_WORD.fullmatch(word) for word in words):
        return words[0] != words[1] and words[0].casefold() != words[1].casefold()
    found = [{m[1] or m[2] for m in _LETTER.finditer(text)} for text in (gold, answer)]
    folded = [{letter.casefold() for letter in letters} for letters in found]
    return folded[0] == folded[1] and found[0] != found[1]


def _states(sides: list[str]) -> bool:
    """Whether the sides of an equation before the last are names of it, or equal to it."""
    value = exact_number(sides[-1])
    for side in sides[:-1]:
        number = exact_number(side)
        if number and value:
            if not same_number(value, number):
                return False
        elif not _NAME.fullmatch(side):
            letters = {m[1] or m[2] for m in _LETTER.finditer(side)}
            if len(letters) == 1:
                return False
    return True
