"""Mathematics and numbers in running text."""

import re
from collections.abc import Sequence

from waterline.rewards.answers.around import denied
from waterline.rewards.answers.exact import SPELLED_UNITS

_TAIL = 4_000
NUMBER = (
    r"(?<![\w.,/^_\\])(?:(?<![)\]}])-)?[$€£]?"
    r"(?:\d{1,3}(?:[. ]\d{3})+,\d+|0,\d+|\d{1,3}(?:,\d{3})+(?:\.\d+)?"
    r"|\d{1,3}(?: \d{3})+(?![\d/])|\d* ?[¼½¾⅐-⅞]|\d+ \d+/\d+"
    r"|\d+,\d{1,2}(?!\d)|\d{1,3}(?:\.\d{3}){2,}|\d*\.?\d+)"
    r"(?!\d|,\d)(?:[eE][-+]?\d{1,4}\b|(?: ?/ ?\d+)(?![\d/]))?"
)
UNIT = (
    r"(?:[ \t]?(?:[€£]|\$(?!\w))"
    rf"|\s*(?:hundred|thousand|million|billion|trillion|dozen)\b|\s*(?:\\?%|pct\b|percent\b|(?:{SPELLED_UNITS})\b(?:\^\{{?[23]\}}?|[²³])?))?"
)
_QUANTITY = re.compile(NUMBER + UNIT, re.ASCII)
# A point or an interval of numbers, and a bound, in plain text.
_ITEM = r"[-+]?(?:\d+(?:\.\d+)?(?:/\d+)?|\.\d+|∞|inf(?:inity)?\b)"
_PAIR = rf"[(\[]\s*{_ITEM}(?:\s*,\s*{_ITEM})+\s*[)\]]"
_TERM = r"(?:sqrt\(\d+\)|√\d+|pi|π)(?:\s?/\s?\d+)?"
_GROUP = re.compile(
    rf"(?<![\w)\]}}]){_PAIR}(?:\s*[U∪]\s*{_PAIR})*(?![\w^])"
    rf"|(?<![\w.,/^_\\*+)-])-?(?:\d+\s?\*?\s?)?{_TERM}(?![\w^/*(])(?!\s*[-+*/^])"
    r"|(?<![\w.,/^_\\*+)-])-?\d+\^(?:\d+|\{\d+\})(?![\w^/*(])(?!\s*[-+*/^])"
    rf"|(?<![\w\\])(?:{_ITEM}\s*(?:[<>]=?|[≤≥])\s*)?[A-Za-z]\s*(?:[<>]=?|[≤≥])\s*{_ITEM}(?![\w^/*+])",
    re.ASCII,
)
_MATHS = re.compile(
    r"\\\((?P<round>.+?)\\\)|\\\[(?P<square>.+?)\\\]"
    r"|\$\$(?P<display>[^$]+)\$\$|(?<!\\)\$(?P<inline>(?:[^$\n\\]|\\.)+)\$",
    re.DOTALL,
)
BETWEEN = re.compile(r"(?:[\s,;.$~]|\\[()\[\],;: ]|\\q?quad|and|or|\\text\s*\{\s*(?:and|or)\s*\})*")
_JOINED = re.compile(r"[\s,;]*(?:and|or|或)?[\s,;]*")
_OPERATOR = (
    r"\\(?:[dtc]?frac|sqrt|pi|times|cdot|div|pm|mp|ln|log|sin|cos|tan|[lg]eq?|[lg]t|neq?)(?![a-z])"
)
_FUNCTIONS = frozenset(
    [
        "exp",
        "sqrt",
        "log",
        "ln",
        "sin",
        "cos",
        "tan",
        "pi",
        "theta",
        "inf",
        "infinity",
        "frac",
        "mod",
    ]
)
# What makes a number a part of a larger expression, or the bound of one.
_BEFORE = re.compile(
    r"(?:(?:\d|(?<![A-Za-z])[A-Za-z]|[)}\]])\s*(?:-|\*\*?)|(?<![\s=]){|[+/_^√∛∜≤≥≠±∓×·⋅÷]|[<>]=|\s[<>]"
    rf"|(?<![</])\b[A-Za-z][<>]|{_OPERATOR}|\bthan"
    r"|\b(?:negative|minus|half(?:\s+of)?|twice|double|triple|thrice|roots?\s+of|at\s+(?:least|most)"
    r"|up\s+to|factorial\s+of|power\s+of|exceeds?|percent\s+of)"
    r"|\bbetween(?:\s+\S+\s+and)?|[(\[]\s*[-.\d]+\s*,)\s*$|\d:$"
)
_AFTER = re.compile(
    r"\s*(?:[+_]|\^(?!\s*\{?\s*\\circ)|\*(?!\*)|-\s*\d|/\s*(?:[A-Za-z](?![A-Za-z])|[(\\])|[⁰¹²³⁴-⁹⁻√π])"
    r"|\s+(?:times|plus|minus|over|divided\s+by|multiplied\s+by|out\s+of|to)\s+[-$\\(\d]"
    r"|\s+(?:to\s+the\s+power|squared|cubed|factorial|mod(?:ulo)?|(?:ten|hundred|thousand)ths?)\b"
    rf"|[A-Za-z](?![A-Za-z'’])|:\d|\s*,\s*[-.\d]+\s*[)\]]|\s*{_OPERATOR}"
)


def is_bare(text: str) -> bool:
    """Whether ``text`` is one expression without prose."""
    if not 0 < len(text) <= 200 or "\n" in text or "$" in text.replace(r"\$", "").strip("$"):
        return False
    prose = re.sub(r"\\(?:begin|end|mbox|mathrm|text\w*)\s*\{[^{}]*\}|\\[a-zA-Z]+", " ", text)
    words = re.findall(r"[^\W\d_]{2,}", prose)
    return re.search(r"\w", text) is not None and _FUNCTIONS.issuperset(words)


def find_list(text: str) -> str | None:
    """Several pieces of mathematics with nothing but commas, 'and' or 'or' between them, joined."""
    pieces = list(_MATHS.finditer(text))
    if len(pieces) < 2 or not BETWEEN.fullmatch(_MATHS.sub("", text)):
        return None
    return ", ".join(piece[piece.lastgroup or 0].strip() for piece in pieces)


def behind(text: str, place: int, alone: bool = False) -> str | None:
    """The answer with which the sentence at ``place`` begins; '' when that is no answer.

    None when there is neither mathematics nor a number; with ``alone``, also when the sentence
    says anything else.
    """
    rest = text[place : place + _TAIL]
    maths = _MATHS.match(rest)
    head = maths.end() if maths else 0
    sentence = (rest[:head] + re.split(r"\.(?=\s|$)|\n", rest[head:], maxsplit=1)[0]).strip()
    if sentence.endswith("?"):
        return None
    pieces = _pieces(sentence)
    if is_bare(sentence.strip("*`")) and (pieces or not alone) and not _MATHS.search(sentence):
        return sentence.strip("*`")
    while pieces and denied(sentence, pieces[0][0], pieces[0][1]):
        pieces.pop(0)
    end = 1
    while end < len(pieces) and _JOINED.fullmatch(sentence[pieces[end - 1][1] : pieces[end][0]]):
        end += 1
    if not pieces or (alone and sentence[: pieces[0][0]] + sentence[pieces[:end][-1][1] :]):
        return None
    return _together(sentence, pieces[:end])


def last(text: str) -> str:
    """The last mathematics or number, with those that 'or' joins to it; '' when it is no answer."""
    pieces = _pieces(text)
    while pieces and denied(text, pieces[-1][0], pieces[-1][1]):
        pieces.pop()
    start = len(pieces) - 1
    while start > 0 and re.fullmatch(r"\s*or\s+", text[pieces[start - 1][1] : pieces[start][0]]):
        start -= 1
    return _together(text, pieces[start:]) if pieces else ""


def _pieces(text: str) -> list[tuple[int, int, str]]:
    """The mathematics and, outside of it, the numbers of a text: (start, end, content)."""
    found = [(m.start(), m.end(), m[m.lastgroup or 0]) for m in _MATHS.finditer(text)]
    for pattern in (_GROUP, _QUANTITY):
        for start, end, _ in found:
            text = text[:start] + "\0" * (end - start) + text[end:]
        found += [(m.start(), m.end(), m[0]) for m in pattern.finditer(text)]
    return sorted(found)


def _together(text: str, pieces: Sequence[tuple[int, int, str]]) -> str:
    """The answer that is made of these pieces, or '' when it is none."""
    (start, *_), (_, end, _) = pieces[0], pieces[-1]
    if len(pieces) == 1 and text[:start].endswith("(") and text[end : end + 1] == ")":
        # A number in brackets, as in de (3/5): not behind a letter or another number.
        start, end = start - 1, end + 1
        if re.search(r"[A-Za-z0-9)\]}]$", text[:start]):
            return ""
        if re.search(r"(?:^|[\s=:])-\s?$", text[:start]):
            start = text.rindex("-", 0, start)
            pieces = [(start, end, text[start:end])]
    if _BEFORE.search(text[max(0, start - 40) : start]) or _AFTER.match(text, end):
        return ""
    if len(pieces) > 1 and not re.search(r"and|or|或", text[start:end]):
        pieces = pieces[:1]  # a comma alone may end a clause
    return ", ".join(dict.fromkeys(piece[2].strip() for piece in pieces))
