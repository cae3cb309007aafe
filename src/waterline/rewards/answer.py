"""Where the answer of a response stands."""

import re
from dataclasses import dataclass

from waterline.rewards.exact import SPELLED_UNITS
from waterline.rewards.latex import boxes

_TAIL = 4_000
_MARKED_TAIL = 40_000
_NUMBER = (
    r"(?<![\w.,/^_\\])(?:(?<![)\]}])[-\u2212])?[$€£]?"
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?: \d{3})+(?![\d/])|\d+ \d+/\d+|\d*\.?\d+)(?!\d|,\d)"
    r"(?:[eE][-+]?\d{1,4}\b|(?: ?/ ?\d+)(?![\d/]))?"
)
_UNIT = rf"(?:\s*(?:\\?%|pct\b|percent\b|(?:{SPELLED_UNITS})\b(?:\^[23]|[²³])?))?"
_LAST_NUMBER = re.compile(_NUMBER + _UNIT, re.ASCII)
# Headings begin with these marks as well: only a number alone on the line is an answer.
_HASHES = re.compile(rf"####[ \t]*({_NUMBER}{_UNIT})[ \t.]*$", re.ASCII | re.MULTILINE)
_ANCHOR = re.compile(r"answer\s*(?:is|are|:|=)+\s*:?\s*", re.IGNORECASE)
_FINAL = re.compile(r"final answer\s*(?:is|are)\s*:?\s*", re.IGNORECASE)
_MATHS = re.compile(
    r"\\\((?P<round>.+?)\\\)|\\\[(?P<square>.+?)\\\]"
    r"|\$\$(?P<display>[^$]+)\$\$|(?<!\\)\$(?P<inline>(?:[^$\n\\]|\\.)+)\$",
    re.DOTALL,
)
_BETWEEN = re.compile(
    r"(?:[\s,;.$~]|\\[()\[\],;: ]|\\q?quad|and|or|\\text\s*\{\s*(?:and|or)\s*\})*"
)
_CHOICE = re.compile(r"(?<![A-Za-z\\{])\(?([A-Z])\)?(?![A-Za-z'’])")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer: its text, and whether it was marked as the answer (boxed, ``####``, bare)."""

    text: str
    marked: bool


def find_answer(response: str) -> Candidate | None:
    r"""The one answer of a response, or None when there is none.

    Only what follows the last ``</think>`` counts. The latest of these is taken: a ``\boxed{…}``,
    with those directly before it that are joined to it by commas, 'and' or 'or'; a number alone
    behind ``####``; mathematics or a number behind 'final answer is'. Without any, it is the whole
    response when that is a bare expression, else the mathematics or number behind the last 'answer
    is', else the last mathematics or number. A last box that is cut off gives no answer.
    """
    text = response.rpartition("</think>")[2][-_MARKED_TAIL:]
    found = boxes(text)
    hashes = list(_HASHES.finditer(text, found[-1][1] if found else 0))
    marked_until = hashes[-1].end() if hashes else found[-1][1] if found else 0
    final = list(_FINAL.finditer(text, marked_until))
    behind = _behind(text, final[-1]) if final else None
    if behind is not None:
        return Candidate(behind, True)
    if hashes:
        return Candidate(hashes[-1][1].strip(), True)
    if not found and re.search(r"\\boxed\s*\{", text):
        return None  # cut off: what was written may be the beginning of another number
    if found:
        # Boxes joined by 'and' are the parts of one answer; an earlier box alone is a step.
        cluster = [found[-1]]
        for box in reversed(found[:-1]):
            if not _BETWEEN.fullmatch(text[box[1] : cluster[0][0]]):
                break
            cluster.insert(0, box)
        contents = list(dict.fromkeys(box[2].strip() for box in cluster))
        return Candidate(", ".join(contents), True) if any(contents) else None
    text = text[-_TAIL:].strip()
    if is_bare(text):
        return Candidate(text, True)
    anchors = list(_ANCHOR.finditer(text))
    found_text = (_behind(text, anchors[-1]) if anchors else None) or _last(text)
    return None if found_text is None else Candidate(found_text, False)


def find_choice(response: str) -> str | None:
    """The letter that a multiple-choice response settles on, or None."""
    answer = response.rpartition("</think>")[2][-_TAIL:]
    anchored = re.findall(_ANCHOR.pattern + r"\(?([A-Z])\)?(?![A-Za-z'’])", answer, re.IGNORECASE)
    letters = anchored or _CHOICE.findall(answer)
    return letters[-1].upper() if letters else None


def is_bare(text: str) -> bool:
    """Whether ``text`` is one expression without prose."""
    if not 0 < len(text) <= 200 or "\n" in text or "$" in text.strip("$"):
        return False
    prose = re.sub(r"\\[a-zA-Z]+", " ", text)
    words = re.findall(r"[^\W\d_]{2,}", prose)
    return not set(words) - {"exp", "sqrt", "log", "ln", "sin", "cos", "tan", "pi", "frac", "mod"}


def find_list(text: str) -> str | None:
    """Several pieces of mathematics with nothing but commas, 'and' or 'or' between them, joined."""
    pieces = list(_MATHS.finditer(text))
    if len(pieces) < 2 or not _BETWEEN.fullmatch(_MATHS.sub("", text)):
        return None
    return ", ".join(piece[piece.lastgroup or 0].strip() for piece in pieces)


def _behind(text: str, anchor: re.Match[str]) -> str | None:
    rest = text[anchor.end() : anchor.end() + _TAIL]
    return _first(re.split(r"(?<=\D)\.(?=\s|$)|\n", rest, maxsplit=1)[0])


def _first(text: str) -> str | None:
    maths, number = _MATHS.search(text), _LAST_NUMBER.search(text)
    if maths and (not number or maths.start() <= number.start()):
        return maths[maths.lastgroup or 0]
    return number.group() if number else None


def _last(text: str) -> str | None:
    place, found = -1, None
    for maths in _MATHS.finditer(text):
        place, found = maths.end(), maths[maths.lastgroup or 0]
    for number in _LAST_NUMBER.finditer(text, max(place, 0)):
        hedge = re.search(r"\d\s+or\s+$", text[: number.start()])
        found = f"{hedge.group()} {number.group()}" if hedge else number.group()
    return found
