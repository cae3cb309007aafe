"""Spellings of the same mathematics made one."""

import re
from collections import deque

_REPLACEMENTS = (
    (re.compile(r"\\[dtc]frac(?![a-zA-Z])"), r"\\frac"),
    (re.compile(r"\\(?:left|right|displaystyle|textstyle|bigl|bigr|big|Big)(?![a-zA-Z])"), ""),
    (re.compile(r"(?<=\d)(?:\{,\}|,\\!\s*|\\,|\\ )(?=\d{3}(?!\d))"), ","),
    (re.compile(r"(?<!\\)\\(?:[!,;:> ]|q?quad(?![a-zA-Z]))|~|\u00a0|\u2009|\u202f"), " "),
    (re.compile(r"[\u2212\u2013]"), "-"),
    (re.compile("×"), r"\\times "),
    (re.compile("÷"), "/"),
    (re.compile("·"), r"\\cdot "),
    (re.compile("π"), r"\\pi "),
    (re.compile("√"), r"\\sqrt "),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![a-zA-Z])"), "°"),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"\\\$"), ""),
    # A root is followed by braces; round brackets were read as the root of nothing.
    (re.compile(r"\\sqrt\s*\(([^()]*)\)"), r"\\sqrt{\1}"),
    (re.compile(r"\+\s*-"), "-"),
    (re.compile(r"(?<![\d.])(\d+)\.0+(?![\d.])"), r"\1"),
    (re.compile(r"\s+"), " "),
)
_WRAPPERS = re.compile(r"^(?:\$+|\\\(|\\\[)(.*?)(?:\$+|\\\)|\\\])$", re.DOTALL)
_TEXT = re.compile(r"\\(?:text|mbox|textbf|textit|mathrm|mathbf|operatorname)\s*\{([^{}]*)\}")


def boxes(text: str, limit: int = 8) -> list[tuple[int, int, str]]:
    r"""The last ``limit`` groups ``\boxed{…}``: (start, end, content), in their order.

    Braces are matched, escaped ones skipped; a group that is never closed is none. ``\boxed 5`` and
    ``\fbox{…}`` count as well.
    """
    found: list[tuple[int, int, str]] = []
    # A bound on the starts that are tried keeps thousands of unclosed boxes cheap.
    starts = deque(re.finditer(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*", text), maxlen=64)
    for match in reversed(starts):
        start, place = match.start(), match.end()
        if text[place : place + 1] != "{":
            bare = re.compile(r"[^\s$\\{}]+").match(text, place)
            if bare:
                found.append((start, bare.end(), bare.group()))
        else:
            depth = 0
            for brace in re.finditer(r"\\.|[{}]", text[place : place + 4_000], re.DOTALL):
                depth += {"{": 1, "}": -1}.get(brace.group(), 0)
                if depth == 0 and brace.group() == "}":
                    end = place + brace.end()
                    found.append((start, end, text[place + 1 : end - 1]))
                    break
        if len(found) == limit:
            break
    # A box within a box is part of the outer one.
    found.reverse()
    return [box for box in found if not any(b[0] < box[0] and box[1] <= b[1] for b in found)]


def unwrap(text: str) -> str:
    r"""``text`` without surrounding blanks, ``$``, ``\( \)``, ``\[ \]`` and closing full stops."""
    text = text.strip().rstrip(".;").strip()
    match = _WRAPPERS.match(text)
    if match and "$" not in match.group(1):
        text = match.group(1).strip().rstrip(".;").strip()
    return text


def simplify(text: str) -> str:
    """``text`` unwrapped, with one spelling for fractions, spaces, signs and degrees."""
    text = unwrap(text)
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text.strip()


def plain_words(text: str) -> str:
    r"""A key for answers in words: ``\text{ (C) }`` and ``(C)``, ``Even`` and ``even`` are one."""
    text = _TEXT.sub(r" \1 ", simplify(text))
    text = re.sub(r"\s+", "", text)
    if re.fullmatch(r"\([A-Za-z]\)", text):
        text = text[1:-1]
    return text.casefold() if re.fullmatch(r"[^\W\d_]{3,}", text) else text
