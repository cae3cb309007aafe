"""Numbers compared as exact rationals."""

import re
from dataclasses import dataclass
from fractions import Fraction

from waterline.rewards.arithmetic import evaluate
from waterline.rewards.latex import simplify
from waterline.rewards.units import split_unit

_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:[, ]\d{3})+(?![\d,])")
_BASED = re.compile(r"(-?)([0-9A-Za-z]+)\s*_\s*\{?\s*(\d{1,2})\s*\}?")
_ASSIGNMENT = re.compile(r"^[A-Za-z](?:_\{?\w{1,3}\}?|\([a-zA-Z0-9]\))?\s*=\s*")
_DECIMAL_COMMA = re.compile(r"(-?\d+),(\d{1,2})")
_DECIMAL = re.compile(r"[-+]?(\d*)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Exact:
    """A rational number as it was written.

    ``unit`` is '' when none was given; ``base`` is (digits, base) of a numeral with a subscript;
    ``places`` counts the decimals of a plain decimal with at least five significant digits, and is
    0 otherwise: only such a decimal may stand for a number that it rounds.
    """

    value: Fraction
    unit: str = ""
    percent: bool = False
    base: tuple[str, int] | None = None
    places: int = 0


def exact_number(text: str) -> Exact | None:
    r"""Read a number exactly, or return None when ``text`` is anything else.

    Understands signs, thousands, decimals, fractions, mixed numbers (``2 2/3``, ``2\frac{2}{3}``),
    sums, products, quotients, integer powers, scientific notation, per cent, units, numerals in a
    base (``204_5``) and ``x = 5``.
    """
    if len(text) > 200:
        return None
    text = _ASSIGNMENT.sub("", simplify(text))
    based = _BASED.fullmatch(text)
    if based:
        sign, digits, base = based[1], based[2].upper(), int(based[3])
        try:
            value = Fraction(int(sign + digits, base))
        except ValueError:
            return None
        return Exact(value, base=(sign + digits.lstrip("0"), base))
    text, unit, scale = split_unit(text)
    percent = text.endswith("%")
    text = _THOUSANDS.sub(lambda m: re.sub("[, ]", "", m[0]), text.removesuffix("%").strip())
    found = evaluate(text)
    if found is None:
        return None
    decimal = _DECIMAL.fullmatch(text)
    places = 0
    if decimal and len((decimal[1] + decimal[2]).lstrip("0")) >= 5:
        places = len(decimal[2])
    return Exact(found * scale, unit, percent, places=places)


def read_numbers(gold: str, answer: str) -> tuple[Exact | None, Exact | None]:
    """``exact_number`` of both. Beside a decimal, ``1,22`` is one with a comma, not a list."""
    numbers = exact_number(gold), exact_number(answer)
    texts = simplify(gold), simplify(answer)
    for one, other in ((0, 1), (1, 0)):
        beside = numbers[other]
        comma = _DECIMAL_COMMA.fullmatch(texts[one])
        if comma and beside is not None and beside.value.denominator > 1:
            number = exact_number(f"{comma[1]}.{comma[2]}")
            return (number, beside) if one == 0 else (beside, number)
    return numbers


def _rounds(decimal: Exact, value: Fraction) -> bool:
    """A decimal with six places or more stands for what it rounds or cuts off."""
    return decimal.places >= 6 and abs(decimal.value - value) < Fraction(1, 10**decimal.places)


def same_number(gold: Exact, answer: Exact) -> bool:
    """Whether ``answer`` is the number ``gold``.

    Equal as rationals; or one is a decimal of six places or more that rounds the other. ``28%`` is
    0.28, and also 28, since the question may ask for the number of per cents; but 28 is not 0.28.
    Two different units, and a numeral in a base without that base, are never the same.
    """
    if gold.base or answer.base:
        return gold.base == answer.base
    if gold.unit and answer.unit and gold.unit != answer.unit:
        return False
    golds = [gold.value, gold.value / 100] if gold.percent else [gold.value]
    answers = [answer.value, answer.value / 100] if answer.percent else [answer.value]
    if any(g == a for g in golds for a in answers):
        return True
    return any(_rounds(answer, g) for g in golds) or any(_rounds(gold, a) for a in answers)
