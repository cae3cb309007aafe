"""Expressions that are refused before anything computes with them."""

import re

MAX_LENGTH = 300
_MAX_DIGITS = 80
_MAX_EXPONENT = 1_000


def is_hostile(text: str) -> bool:
    r"""Whether computing with ``text`` could take unbounded time or memory.

    More than 300 characters or 80 digits; a factorial; a power within an exponent or a limit (as in
    towers, and in sums up to 10⁹); an exponent or limit of more than 1,000; brackets nested more
    than 12 deep.
    """
    if len(text) > MAX_LENGTH or sum(c.isdigit() for c in text) > _MAX_DIGITS:
        return True
    if "\0" in text or re.search(r"(?<![\\!])!(?!=)|\\(?:bmod|pmod|mod)(?![a-zA-Z])", text):
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
            if any(raised) or re.search(r"(?:\^|\*\*)\s*[-+]?(?:\w|\\[a-zA-Z]+)\s*$", text[:i]):
                return True
            powers += 1
    if powers > 24:
        return True
    exponents = re.findall(r"(?:\^|\*\*|(?<=\d)[eE])\s*[{(]?\s*[-+]?([\d,]+)", text)
    return any(int(e.replace(",", "") or 0) > _MAX_EXPONENT for e in exponents)
