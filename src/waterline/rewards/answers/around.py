"""What stands directly before and behind an answer, and belongs to it or takes it back."""

import re

_FRACTION = r"\\(?:[dtc]?frac|sqrt|binom|overline)\s*(?:\[[^\]]*\]\s*)?(?:\{[^{}]*\}\s*)?\{\s*$"
# The answer is an operand, an argument, an exponent, a bound.
_OPERAND = re.compile(
    rf"{_FRACTION}|[\^_]\s*\{{?\s*$|[+/<>≤≥≠×·÷±√]\s*$|(?<!\*)\*\s*$|\d$|[\w}}]\(\s*$"
    r"|\\(?:cdot|times|div|pm|mp|sqrt|not|neg|ln|log|sin|cos|tan|exp|[lg]eq?|[lg]eqslant|[lg]t|neq?)"
    r"(?![a-zA-Z])\s*\(?\s*$|[\w)}\]]\s*-\s*$"
)
_MINUS = re.compile(r"(?:^|[=$:(\[{]\s*|\\[(\[]\s*|\s)(-|−)$|[=$(\[{]\s*(?:-|−)\s*$")
_GOES_ON = re.compile(
    r"\s*(?:\^(?!\s*\{?\s*\\circ)|_|\+|\*\s*[\d(\\]|-\s*[\d\\(]|/\s*[\d(\\]|,\d{3}(?!\d)|\.?\d"
    r"|\\(?:cdot|times|div|pm|mp)(?![a-zA-Z])|[×·÷]"
    r"|(?:squared|cubed|factorial|(?:times|plus|minus|over|divided by)\s+[-$\\(\d])\b)"
)
_SCALE = re.compile(
    r"[\s$]*(?:\\text\s*\{\s*)?(hundred|thousand|million|billion|trillion|dozen)\b", re.IGNORECASE
)
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:can)?not|n['’]t|\bnon|\bnever|\bno\s+longer|\bneither|\bnor|\bexcept(?:\s+for)?"
    r"|\bother\s+than|\brules?\s+out|不是)\s*(?:be|equal(?:\s+to)?)?\s*(?:an?|the)?\s*"
    r"(?:answer|option|choice)?[\s*$(]*$",
    re.IGNORECASE,
)
_DENIED_BEHIND = re.compile(
    r"[\s$)*]*(?:is|was|are|seems|would\s+be|can|could)\s*"
    r"(?:n['’]t|not|never|wrong|incorrect|false|impossible|ruled\s+out)\b"
    r"|[\s$)*]*(?:isn|wasn|can|couldn)['’]t\b",
    re.IGNORECASE,
)


def denied(text: str, start: int, end: int | None = None) -> bool:
    """Whether what stands from ``start`` to ``end`` is said not to be so.

    Without ``end`` only what stands before it counts.
    """
    before = text[max(0, start - 60) : start]
    if _DENIED_BEFORE.search(before):
        return True
    return end is not None and _DENIED_BEHIND.match(text, end) is not None


def whole(text: str, start: int, end: int, content: str) -> str | None:
    r"""The answer that a box is, with a minus before and a scale behind it; None where it is none.

    ``-\boxed{5}`` is −5 and ``\boxed{5}`` million 5,000,000. A box that is an operand
    (``\boxed{5}^2``, ``\frac{1}{\boxed{5}}``, ``\boxed{5},000``) or a bound (``x > \boxed{5}``) is
    part of something else, and one that is denied is no answer.
    """
    before = text[max(0, start - 60) : start]
    if denied(text, start, end) or _OPERAND.search(before) or _GOES_ON.match(text, end):
        return None
    content = content.strip()
    if _MINUS.search(before) and content:
        content = f"-{content}" if re.fullmatch(r"[\w.,\\{}/]+", content) else f"-({content})"
    scale = _SCALE.match(text, end)
    return f"{content} {scale[1].lower()}" if scale else content
