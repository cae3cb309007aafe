"""Expressions that are refused before anything computes with them."""

import re

MAX_LENGTH = 300
_MAX_DIGITS = 80
_MAX_EXPONENT = 1_000
# Text that is no UTF-8, factorials, remainders, and exponentials within each other.
_REFUSED = re.compile(
    r"[\0\ud800-\udfff↑]|(?<![\\])!(?!=)|\\(?:bmod|pmod|mod|Gamma)(?![a-zA-Z])"
    r"|factorial|gamma\s*\(|exp\s*[({][^)}]*exp"
)
# What is written out term by term, with many terms.
_SUM = re.compile(r"\\(?:sum|prod)(?![a-zA-Z])|(?<![a-zA-Z])(?:sum|prod|product|range)(?![a-zA-Z])")
_CHOOSE = re.compile(r"binom|choose|(?<![a-zA-Z])C\s*\(")
_EXPANDED = re.compile(r"\([^()]*[a-zA-Z][^()]*\)\s*(?:\^|\*\*)\s*\{?\s*\d{3}")


def is_hostile(text: str) -> bool:
    r"""Whether computing with ``text`` could take unbounded time or memory.

    More than 300 characters or 80 digits; invalid UTF-8; a factorial; a power within an exponent or
    a limit (as in towers, and in sums up to 10⁹); an exponent or limit of more than 1,000; a sum or
    product with a number from 100 on, a power from the 100th on of a bracket with letters, a
    binomial coefficient of a number from 10,000 on; brackets nested more than 12 deep.
    """
    if len(text) > MAX_LENGTH or sum(c.isdigit() for c in text) > _MAX_DIGITS:
        return True
    if _REFUSED.search(text) or _EXPANDED.search(text):
        return True
    if _SUM.search(text) and re.search(r"\d{3}", text):
        return True
    if _CHOOSE.search(text) and re.search(r"\d{5}", text):
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
            if any(raised) or re.search(r"(?:\^|\*\*)\s*[-+]?(?:\d+|\w|\\[a-zA-Z]+)\s*$", text[:i]):
                return True
            powers += 1
    if powers > 24:
        return True
    exponents = re.findall(r"(?:\^|\*\*|(?<=\d)[eE])\s*[{(]?\s*[-+]?([\d,]+)", text)
    return any(int(e.replace(",", "") or 0) > _MAX_EXPONENT for e in exponents)
