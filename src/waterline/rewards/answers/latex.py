"""Spellings of the same mathematics made one."""

import re
from collections import deque
from functools import lru_cache

from waterline.rewards.answers.symbols import latex_symbols

# A command that was escaped twice; in a matrix no row begins with such a word.
_TWICE = re.compile(
    r"(?<!\\)\\\\(?=(?:[dtc]?frac|sqrt|[lg]eq?|pi|cup|in(?:fty)?|left|right|begin|end|text|times"
    r"|cdot|pm)(?![a-zA-Z]))"
)
_GREEK = "pi|theta|alpha|beta|gamma|lambda|omega|phi"
# Nothing below changes such a number.
_PLAIN = re.compile(r"-?[0-9]+(?:/[0-9]+|\.[0-9]*[1-9])?")
# Full stops, blanks and line breaks behind an answer, also those that were not finished.
_TRAILING = re.compile(r"(?:[\s.,;]|\\[,;:! ]|\\n|\\)+$")
_JOINED = re.compile(r"(?<=[)\]}])\s*(?:or|\\text\s*\{\s*or\s*\})\s*(?=[(\[]|\\\{)")
_REPLACEMENTS = (
    (_TWICE, r"\\"),
    (re.compile(r"\\(?:[dtc]|nice|s)frac(?![a-zA-Z])"), r"\\frac"),
    (re.compile(r"\\(?:left|right|displaystyle|textstyle|[bB]igg?[lr]?)(?![a-zA-Z])"), ""),
    (re.compile(r"\\(?:text)?color\s*\{[^{}]*\}"), ""),
    (re.compile(r"(?<=\d)(?:\{,\}|,\\!\s*|\\,|\\ )(?=\d{3}(?!\d))"), ","),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"(?<!\\)\\(?:[!,;:> ]|q?quad(?![a-zA-Z]))|~"), " "),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![a-zA-Z])"), "°"),
    (re.compile(r"\\langle(?![a-zA-Z])\s*"), "("),
    (re.compile(r"\s*\\rangle(?![a-zA-Z])"), ")"),
    (re.compile(r"\\sqrt\s*(\[[^\]]*\])?\s*([0-9a-zA-Z])"), r"\\sqrt\1{\2}"),
    (re.compile(r"\\varnothing(?![a-zA-Z])"), r"\\emptyset"),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"\\\$"), "$"),
    (re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*\^)"), r"\\times "),
    # Names that are written without a backslash.
    (re.compile(r"\\(?:text|mathrm)\s*\{\s*pi\s*\}"), r"\\pi "),
    (re.compile(rf"(?<![\\a-zA-Z])({_GREEK})(?![a-zA-Z])"), r"\\\1 "),
    (re.compile(r"(?<![\\a-zA-Z])inf(?:inity|ty)?(?![a-zA-Z])"), r"\\infty "),
    (re.compile(r"(?<![\\a-zA-Z])(exp|sqrt|sin|cos|tan|log|ln)(?=\s*\()"), r"\\\1"),
    # A root is followed by braces; round brackets were read as the root of nothing.
    (re.compile(r"\\sqrt\s*\(((?:[^()]|\([^()]*\))*)\)"), r"\\sqrt{\1}"),
    (re.compile(r"\\bigcup(?![a-zA-Z])|(?<=[)\]}])\s*U\s*(?=[(\[]|\\\{)"), r"\\cup "),
    (re.compile(r"\^\s*(\\frac\s*\{[^{}]*\}\s*\{[^{}]*\})"), r"^{\1}"),
    (re.compile(r"\+\s*-"), "-"),
    (re.compile(r"(?<![\d.])(\d+)\.0+(?![\d.]|,\d)"), r"\1"),
    (re.compile(r"(?<![\d.])1i(?![a-zA-Z])"), "i"),
    (re.compile(r"\s+"), " "),
)
_BOX = re.compile(r"\\(?:boxed|f(?:rame)?box)(?![a-zA-Z])\s*")
# What a box without braces holds: a command with its groups, or what has no blank.
_BARE = re.compile(r"\\[a-zA-Z]+(?:\s*\{[^{}]*\})*|(?![A-Za-z]{2})[-+.(\[|\w][^\s$\\{}]*")
_BREAK = re.compile(r"\n|\$|\\[)\]]")
_WRAPPERS = re.compile(r"^(?:\$+|\\\(|\\\[)(.*?)(?:\$+|\\\)|\\\])$", re.DOTALL)
_TEXT = re.compile(r"\\(?:text|mbox|textbf|textit|mathrm|mathbf|operatorname)\s*\{([^{}]*)\}")


def boxes(text: str, limit: int = 8) -> list[tuple[int, int, str]] | None:
    r"""The last ``limit`` groups ``\boxed{…}``: (start, end, content), in their order.

    ``\boxed 5``, ``\fbox{…}`` and ``\framebox{…}`` count as well. Braces are matched, escaped ones
    skipped. None when the last box is never closed, or lies within one that is not.
    """
    found: list[tuple[int, int, str]] = []
    # A bound on the starts that are tried keeps thousands of unclosed boxes cheap.
    starts = deque(_BOX.finditer(text), maxlen=64)
    for match in reversed(starts):
        start, place = match.start(), match.end()
        box = _closed(text, start, place)
        if box:
            found.append(box)
        # An unclosed box reaches to the end of its line or formula, whatever stands there.
        elif text[place : place + 1] in ("{", "") and not (
            found and _BREAK.search(text, place, found[0][0])
        ):
            return None
        if len(found) == limit:
            break
    # A box within a box is part of the outer one.
    found.reverse()
    return [box for box in found if not any(b[0] < box[0] and box[1] <= b[1] for b in found)]


def _closed(text: str, start: int, place: int) -> tuple[int, int, str] | None:
    """The box that begins at ``start`` and has its content at ``place``; None without an end."""
    if text[place : place + 1] != "{":
        bare = _BARE.match(text, place)
        return (start, bare.end(), bare.group()) if bare else None
    depth = 0
    for brace in re.finditer(r"\\.|[{}]", text[place : place + 4_000], re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0 and brace.group() == "}":
            end = place + brace.end()
            return start, end, text[place + 1 : end - 1]
    return None


def unwrap(text: str) -> str:
    r"""``text`` without blanks, ``$``, ``\( \)`` and ``\[ \]`` around it, and its full stop."""
    text = _trimmed(text)
    match = _WRAPPERS.match(text)
    return _trimmed(match[1]) if match and "$" not in match[1] else text


def _trimmed(text: str) -> str:
    """``text`` without blanks around it and full stops or unfinished commands behind."""
    text = text.strip()
    return _TRAILING.sub("", text) if text[-1:] in ".,;:!\\n" else text


@lru_cache(maxsize=4_096)
def simplify(text: str) -> str:
    """``text`` unwrapped, with one spelling for fractions, spaces, signs, degrees and unions."""
    if _PLAIN.fullmatch(text):
        return text
    text = unwrap(latex_symbols(text))
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    if "\\infty" in text:  # elsewhere round brackets may be points
        text = _JOINED.sub(r"\\cup ", text)
    return text.strip()


def spelled_out(text: str) -> str:
    r"""``text`` simplified, with its words out of ``\text`` and the like."""
    return re.sub(r"\s+", " ", _TEXT.sub(r" \1 ", simplify(text))).strip()


def plain_words(text: str) -> str:
    r"""A key for answers in words: ``\text{ (C) }`` and ``(C)``, ``Even`` and ``even`` are one."""
    text = re.sub(r"(?<!\d) | (?!\d)", "", spelled_out(text))
    choice = re.fullmatch(r"\(?([A-Za-z])[).:]*", text)
    text = choice[1] if choice else text.rstrip(".")
    return text.casefold() if re.fullmatch(r"[^\W\d_]{3,}", text) else text
