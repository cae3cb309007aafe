"""Where the answer of a response stands."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from waterline.rewards.exact import SPELLED_UNITS
from waterline.rewards.final import final_text
from waterline.rewards.latex import boxes

_TAIL = 4_000
_MARKED_TAIL = 40_000
_NUMBER = (
    r"(?<![\w.,/^_\\])(?:(?<![)\]}])-)?[$€£]?"
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?: \d{3})+(?![\d/])|\d* ?[¼½¾⅐-⅞]|\d+ \d+/\d+"
    r"|\d*\.?\d+)(?!\d|,\d)(?:[eE][-+]?\d{1,4}\b|(?: ?/ ?\d+)(?![\d/]))?"
)
_UNIT = rf"(?:\s*(?:\\?%|pct\b|percent\b|(?:{SPELLED_UNITS})\b(?:\^\{{?[23]\}}?|[²³])?))?"
_LAST_NUMBER = re.compile(_NUMBER + _UNIT, re.ASCII)
# Headings begin with these marks as well: only a number alone on the line is an answer.
_HASHES = re.compile(rf"####[ \t]*({_NUMBER}{_UNIT})[ \t.]*$", re.ASCII | re.MULTILINE)
_ANCHOR = re.compile(r"answers?\s*(?:is|are|:|=)+\s*:?\s*", re.IGNORECASE)
_FINAL = re.compile(r"final answers?\s*(?:is|are)\s*:?\s*", re.IGNORECASE)
_MATHS = re.compile(
    r"\\\((?P<round>.+?)\\\)|\\\[(?P<square>.+?)\\\]"
    r"|\$\$(?P<display>[^$]+)\$\$|(?<!\\)\$(?P<inline>(?:[^$\n\\]|\\.)+)\$",
    re.DOTALL,
)
_BETWEEN = re.compile(
    r"(?:[\s,;.$~]|\\[()\[\],;: ]|\\q?quad|and|or|\\text\s*\{\s*(?:and|or)\s*\})*"
)
_JOINED = re.compile(r"[\s,;]*(?:and|or|或)?[\s,;]*")
_OPERATOR = (
    r"\\(?:[dtc]?frac|sqrt|pi|times|cdot|div|pm|mp|ln|log|sin|cos|tan|[lg]eq?|[lg]t|neq?)(?![a-z])"
)
# What makes a number a part of a larger expression, or the bound of one.
_BEFORE = re.compile(
    r"(?:(?:\d|(?<![A-Za-z])[A-Za-z]|[)}\]])\s*(?:-|\*\*?)|(?<![\s=]){|[+/_^√∛∜≤≥≠±∓×·⋅÷]|[<>]=|\s[<>]"
    rf"|(?<![</])\b[A-Za-z][<>]|{_OPERATOR}|\bthan"
    r"|\bbetween(?:\s+\S+\s+and)?|[(\[]\s*[-.\d]+\s*,)\s*$|\d:$"
)
_AFTER = re.compile(
    r"\s*(?:[+_]|\^(?!\s*\{?\s*\\circ)|\*(?!\*)|-\s*\d|/\s*(?:[A-Za-z](?![A-Za-z])|[(\\])|[⁰¹²³⁴-⁹⁻√π])"
    rf"|[A-Za-z](?![A-Za-z'’])|:\d|\s*,\s*[-.\d]+\s*[)\]]|\s*{_OPERATOR}"
)
_NOT = re.compile(
    r"(?:\bnot|n't|\bnon|\bnever|不是)\s*(?:an?|the|option|choice)?[\s*(]*$", re.IGNORECASE
)
_CHOICE = re.compile(r"(?<![A-Za-z\\{])\(?([A-Z])\)?(?![A-Za-z'’])")
_CHOSEN = re.compile(
    r"(?i:(?:answer|choice|option)\s*(?:is|are|:|=)+)\s*:?\s*(?i:option|choice)?[\s*$]*"
    r"(?:\\(?:text|mathrm)\w*\{)?[\s*]*\(?([A-Z])\)?(?![A-Za-z'’])"
)
# The article and the pronoun, where the next word is no verb that a letter could take.
_WORD = re.compile(
    r"(?:A\s+(?!(?:is|was|as|and|or|but|because|since|it|has|must|seems)\b)|I\s+)[a-z]"
)
_LABELLED = re.compile(r"(?:\(([A-Z])\)|([A-Z])[.):])\s+(\S.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer: its text, and whether it was marked as the answer (boxed, ``####``, bare)."""

    text: str
    marked: bool


def find_answer(response: str, complete: bool = True) -> Candidate | None:
    r"""The one answer of a response, or None when there is none.

    Only what ``final_text`` leaves counts. The latest of these is taken: a ``\boxed{…}``, with
    those directly before it that are joined to it by commas, 'and' or 'or'; a number alone behind
    ``####``; mathematics or a number behind 'final answer is', or behind 'answer is' in a sentence
    after those that says nothing else. Without any, it is the whole response when that is a bare
    expression, else what stands behind the last 'answer is', else the last mathematics or number.
    A number that is denied, a bound, or part of an expression that cannot be read is no answer.

    A last box that is never closed gives no answer. A response that is not ``complete`` gives a
    marked one alone, which does not touch its end unless it is boxed: what was written may be the
    beginning of another number.
    """
    text = final_text(response)[-_MARKED_TAIL:]
    found = boxes(text)
    if found is None:
        return None
    boxed_until = found[-1][1] if found else 0
    if not complete:
        text = text[: max(boxed_until, text.rfind(" ") + 1, text.rfind("\n") + 1)]
    hashes = list(_HASHES.finditer(text, boxed_until))
    marked_until = hashes[-1].end() if hashes else boxed_until
    stated = [_behind(text, anchor) for anchor in _FINAL.finditer(text, marked_until)][-1:]
    if marked_until:
        stated += [_behind(text, a, alone=True) for a in _ANCHOR.finditer(text, marked_until)]
    stated = [answer for answer in stated if answer]
    if stated:
        return Candidate(stated[-1], True)
    if hashes:
        return Candidate(hashes[-1][1].strip(), True)
    if found:
        # Boxes joined by 'and' are the parts of one answer; an earlier box alone is a step.
        cluster = [found[-1]]
        for box in reversed(found[:-1]):
            if not _BETWEEN.fullmatch(text[box[1] : cluster[0][0]]):
                break
            cluster.insert(0, box)
        contents = list(dict.fromkeys(box[2].strip() for box in cluster))
        return Candidate(", ".join(contents), True) if any(contents) else None
    if not complete:
        return None
    text = text[-_TAIL:].strip()
    if is_bare(text):
        return Candidate(text.strip("*`"), True)
    anchors = list(_ANCHOR.finditer(text))
    answer = _behind(text, anchors[-1]) if anchors else None
    if answer is None:
        answer = _last(text)
    return Candidate(answer, False) if answer else None


def find_choice(response: str) -> str | None:
    """What a multiple-choice response settles on: one letter, 'A or B', or None."""
    text = final_text(response)[-_TAIL:]
    chosen = list(_CHOSEN.finditer(text))
    letters = chosen[-1:] or [
        letter
        for letter in _CHOICE.finditer(text)
        if not _WORD.match(text, letter.start(1)) and not _denied(text, letter.start())
    ]
    if not letters:
        return None
    before = re.search(r"\b([A-Z])\)?\s*(?:or|and|/)\s*$", text[: letters[-1].start()])
    after = re.match(r"\s*(?:or|and|/)\s*\(?([A-Z])\b", text[letters[-1].end() :])
    parts = [before and before[1], letters[-1][1], after and after[1]]
    return " or ".join(part for part in parts if part)


def labelled(text: str) -> tuple[str, str] | None:
    """The letter and the text of a choice that is spelled out, as in ``(D) none`` or ``D. none``.

    None for anything else, and where further choices follow.
    """
    match = _LABELLED.fullmatch(text)
    if not match or re.search(r"\([A-Z]\)|\b[A-Z][.):](?:\s|$)", match[3]):
        return None
    return match[1] or match[2], match[3]


def is_bare(text: str) -> bool:
    """Whether ``text`` is one expression without prose."""
    if not 0 < len(text) <= 200 or "\n" in text or "$" in text.replace(r"\$", "").strip("$"):
        return False
    prose = re.sub(r"\\(?:begin|end|mbox|mathrm|text\w*)\s*\{[^{}]*\}|\\[a-zA-Z]+", " ", text)
    words = re.findall(r"[^\W\d_]{2,}", prose)
    return re.search(r"\w", text) is not None and not set(words) - {
        "exp",
        "sqrt",
        "log",
        "ln",
        "sin",
        "cos",
        "tan",
        "pi",
        "frac",
        "mod",
    }


def find_list(text: str) -> str | None:
    """Several pieces of mathematics with nothing but commas, 'and' or 'or' between them, joined."""
    pieces = list(_MATHS.finditer(text))
    if len(pieces) < 2 or not _BETWEEN.fullmatch(_MATHS.sub("", text)):
        return None
    return ", ".join(piece[piece.lastgroup or 0].strip() for piece in pieces)


def _behind(text: str, anchor: re.Match[str], alone: bool = False) -> str | None:
    """What the sentence behind ``anchor`` begins with; '' when that is no answer.

    None when there is neither mathematics nor a number; with ``alone``, also when the sentence
    says anything else.
    """
    rest = text[anchor.end() : anchor.end() + _TAIL]
    maths = _MATHS.match(rest)
    head = maths.end() if maths else 0
    sentence = (rest[:head] + re.split(r"\.(?=\s|$)|\n", rest[head:], maxsplit=1)[0]).strip()
    if sentence.endswith("?"):
        return None
    pieces = _pieces(sentence)
    if is_bare(sentence.strip("*")) and (pieces or not alone) and not _MATHS.search(sentence):
        return sentence.strip("*")
    while pieces and _denied(sentence, pieces[0][0]):
        pieces.pop(0)
    end = 1
    while end < len(pieces) and _JOINED.fullmatch(sentence[pieces[end - 1][1] : pieces[end][0]]):
        end += 1
    if not pieces or (alone and sentence[: pieces[0][0]] + sentence[pieces[:end][-1][1] :]):
        return None
    return _together(sentence, pieces[:end])


def _last(text: str) -> str:
    pieces = _pieces(text)
    while pieces and _denied(text, pieces[-1][0]):
        pieces.pop()
    start = len(pieces) - 1
    while start > 0 and re.fullmatch(r"\s*or\s+", text[pieces[start - 1][1] : pieces[start][0]]):
        start -= 1
    return _together(text, pieces[start:]) if pieces else ""


def _denied(text: str, place: int) -> bool:
    return bool(_NOT.search(text[max(0, place - 40) : place]))


def _pieces(text: str) -> list[tuple[int, int, str]]:
    """The mathematics and, outside of it, the numbers of a text: (start, end, content)."""
    found = [(m.start(), m.end(), m[m.lastgroup or 0]) for m in _MATHS.finditer(text)]
    outside = _MATHS.sub(lambda match: "\0" * len(match[0]), text)
    return sorted(found + [(m.start(), m.end(), m[0]) for m in _LAST_NUMBER.finditer(outside)])


def _together(text: str, pieces: Sequence[tuple[int, int, str]]) -> str:
    """The answer that is made of these pieces, or '' when it is none."""
    (start, *_), (_, end, _) = pieces[0], pieces[-1]
    if _BEFORE.search(text[max(0, start - 40) : start]) or _AFTER.match(text, end):
        return ""
    if len(pieces) > 1 and not re.search(r"and|or|或", text[start:end]):
        pieces = pieces[:1]  # a comma alone may end a clause
    return ", ".join(dict.fromkeys(piece[2].strip() for piece in pieces))
