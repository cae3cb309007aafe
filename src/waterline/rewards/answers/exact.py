"""Numbers, with their units, compared as exact rationals."""

import re
from dataclasses import dataclass
from fractions import Fraction

from waterline.rewards.answers.arithmetic import evaluate
from waterline.rewards.answers.latex import simplify

_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:[, ]\d{3})+(?![\d,])")
# The comma of decimals where it can be nothing else: behind thousands with dots or blanks, in
# ``0,05`` and ``0,125``, before two noughts. Elsewhere ``1,5`` may be two numbers.
_COMMA = re.compile(
    r"([-+]?(?:[1-9]\d{0,2}(?:(?:\.\d{3})+|(?: \d{3})+)|0(?=,0\d|,\d{3})|\d+(?=,00$))),(\d+)"
)
_DOTTED = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3}){2,}")
_BASED = re.compile(r"(-?)([0-9A-Za-z]+)\s*_\s*\{?\s*(\d{1,2})\s*\}?")
_ASSIGNMENT = re.compile(
    r"^(?:[A-Za-z](?:_\{?\w{1,3}\}?|\([a-zA-Z0-9]\))?\s*)?(?:=|\\approx(?![a-zA-Z]))\s*"
    r"|(?<=[\d}).])\s*=\s*[A-Za-z]$"
)
_DECIMAL_COMMA = re.compile(r"([-+]?\d+),(\d+)")
_DECIMAL = re.compile(r"[-+]?(\d*)\.(\d+)")
# Each line: one unit, with its spellings.
_UNITS = {
    name: line.split()[0]
    for line in (
        "mm millimeter millimeters millimetre millimetres",
        "cm centimeter centimeters centimetre centimetres",
        "m meter meters metre metres",
        "km kilometer kilometers kilometre kilometres",
        "inch inches in",
        "foot feet ft",
        "yard yards yd",
        "mile miles mi",
        "mg milligram milligrams",
        "g gram grams",
        "kg kilogram kilograms",
        "ounce ounces oz",
        "pound pounds lb lbs £",
        "ml milliliter milliliters",
        "liter liters litre litres l",
        "second seconds sec s",
        "minute minutes min mins",
        "hour hours hr hrs h",
        "day days",
        "week weeks",
        "month months",
        "year years",
        "mile/hour mph",
        "km/hour kph",
        "$ dollar dollars usd",
        "¢ cent cents",
        "€ euro euros eur",
        "° degree degrees",
        "radian radians rad",
    )
    for name in line.split()
}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6}
_SCALES |= {"billion": 10**9, "trillion": 10**12}
# "in" is left out: in prose it is rarely an inch.
SPELLED_UNITS = "|".join(
    name for name in sorted(_UNITS, key=len, reverse=True) if name.isalpha() and name != "in"
)
_PERCENT = ("percent", "pct", "per cent", "percents")
_TEXT = re.compile(r"(.*?)\s*\\(?:text|mbox|textbf|textit|mathrm)\s*\{([^{}]*)\}(.*)", re.DOTALL)
_WORDS = re.compile(r"(.*?[\d)}%])\s*([A-Za-z°][A-Za-z°. /]*)(.*)", re.DOTALL)
_CURRENCY = re.compile(r"([-+]?)\s*([$€£]?)\s*(.*?)\s*([$€£¢]?)", re.DOTALL)
# Text that is no unit, for it says something else about the number.
_NO_UNIT = re.compile(
    r"\d|\b(?:or|and|not|to|k|(?:ten|hundred|thousand|million)ths?|mille|squared|cubed|factorial"
    r"|mod(?:ulo)?|wrong|incorrect|false|never|root)\b"
)
# The digits under the line repeat: 0.1\overline{6} is 1/6.
_REPEATING = re.compile(r"(?<![\d.])(\d*)\.(\d*?)\\(?:overline|bar|dot)\s*\{?\s*(\d+)\s*\}?")
_POWER = re.compile(r"\s*(?:\^\s*\{?\s*([23])\s*\}?)?\s*")


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
    base (``204_5``) and ``x = 5``. A comma is read as that of decimals where it can be nothing else
    (``1.234,50``, ``0,05``, ``12,50 €``).
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
    text = text.removesuffix("%").strip()
    if text[:1] in "([{\\" and "," in text:  # numbers in brackets are several: (100,200)
        return None
    comma = _COMMA.fullmatch(text)
    if not comma and (unit or percent) and not _THOUSANDS.fullmatch(text):
        comma = _DECIMAL_COMMA.fullmatch(text)  # a quantity is one number
    if comma:
        text = f"{re.sub('[. ]', '', comma[1])}.{comma[2]}"
    elif _DOTTED.fullmatch(text):
        text = text.replace(".", "")
    text = _THOUSANDS.sub(lambda m: re.sub("[, ]", "", m[0]), text)
    found = evaluate(_REPEATING.sub(_repeated, text))
    if found is None:
        return None
    decimal = _DECIMAL.fullmatch(text)
    places = 0
    if decimal and len((decimal[1] + decimal[2]).lstrip("0")) >= 5:
        places = len(decimal[2])
    return Exact(found * scale, unit, percent, places=places)


def _repeated(match: re.Match[str]) -> str:
    """A decimal that repeats, as a fraction."""
    whole, once, period = match[1] or "0", match[2], match[3]
    nines = (10 ** len(period) - 1) * 10 ** len(once)
    return f"({int(whole + once + period) - int(whole + once)}/{nines})"


def read_numbers(gold: str, answer: str) -> tuple[Exact | None, Exact | None]:
    """``exact_number`` of both. Where the other is a decimal, ``1,22`` is one too, not a list."""
    numbers = exact_number(gold), exact_number(answer)
    texts = simplify(gold), simplify(answer)
    for one, other in ((0, 1), (1, 0)):
        paired = numbers[other]
        if numbers[one] is not None or paired is None or paired.value.denominator == 1:
            continue
        comma = _DECIMAL_COMMA.fullmatch(_ASSIGNMENT.sub("", texts[one]))
        if comma:
            number = exact_number(f"{comma[1]}.{comma[2]}")
            return (number, paired) if one == 0 else (paired, number)
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
    lone = gold.percent != answer.percent
    golds = [gold.value, gold.value / 100] if gold.percent and lone else [gold.value]
    answers = [answer.value, answer.value / 100] if answer.percent and lone else [answer.value]
    if any(g == a for g in golds for a in answers):
        return True
    return any(_rounds(answer, g) for g in golds) or any(_rounds(gold, a) for a in answers)


def split_unit(text: str) -> tuple[str, str, int]:
    r"""Cut a trailing unit off: (number, unit, scale).

    ``15\text{ cm}^2`` → ("15", "cm2", 1); ``3 million`` → ("3", "", 1000000); ``28 percent`` →
    ("28%", "", 1); ``$ 5`` → ("5", "$", 1). Words inside ``\text`` are always taken for a unit;
    outside, letters might be variables, and only known units are. Text without a unit comes back
    as it is.
    """
    sign, before, text, after = _CURRENCY.fullmatch(text.strip()).groups()  # type: ignore[union-attr]
    text, currency = sign + text, _UNITS.get(before or after, "")
    in_text = _TEXT.fullmatch(text)
    match = in_text or _WORDS.fullmatch(text)
    if not match or not match[1].strip():
        return text, currency, 1
    number, words = match[1].strip(), " ".join(match[2].lower().rstrip(". ").split())
    power = _POWER.fullmatch(match[3])
    if not power or _NO_UNIT.search(words):
        return text, currency, 1
    if words in _PERCENT:
        return number + "%", "", 1
    first, _, rest = words.partition(" ")
    scale = _SCALES.get(first, 1)
    if scale > 1:
        words = rest
    prefix = ""
    for name, exponent in (("square ", "2"), ("cubic ", "3"), ("sq ", "2")):
        if words.startswith(name):
            words, prefix = words.removeprefix(name), exponent
    parts = [_UNITS.get(part, "") for part in re.split(r"\s*/\s*|\s+per\s+", words)]
    unit = "/".join(parts) if all(parts) else ""
    if not unit and words and not in_text:
        return text, currency, 1
    unit = unit and unit + (power[1] or prefix)
    return number, unit or currency, scale
