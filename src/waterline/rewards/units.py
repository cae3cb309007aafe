"""Units of measurement behind a number."""

import re

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
        "pound pounds lb lbs",
        "ml milliliter milliliters",
        "liter liters litre litres l",
        "second seconds sec s",
        "minute minutes min mins",
        "hour hours hr hrs h",
        "day days",
        "week weeks",
        "month months",
        "year years",
        "mph",
        "dollar dollars usd",
        "cent cents",
        "° degree degrees",
        "radian radians rad",
    )
    for name in line.split()
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
# "in" is left out: in prose it is rarely an inch.
SPELLED_UNITS = "|".join(
    re.escape(name) for name in sorted(_UNITS, key=len, reverse=True) if name != "in"
)
_PERCENT = ("percent", "pct", "per cent", "percents")
_TEXT = re.compile(r"(.*?)\s*\\(?:text|mbox|textbf|textit|mathrm)\s*\{([^{}]*)\}(.*)", re.DOTALL)
_WORDS = re.compile(r"(.*?[\d)}%])\s*([A-Za-z°€£][A-Za-z°. ]*)(.*)", re.DOTALL)
_POWER = re.compile(r"\s*(?:\^\s*\{?\s*([23])\s*\}?|([²³]))?\s*")


def split_unit(text: str) -> tuple[str, str, int]:
    r"""Cut a trailing unit off: (number, unit, scale).

    ``15\text{ cm}^2`` → ("15", "cm2", 1); ``3 million`` → ("3", "", 1000000); ``28 percent`` →
    ("28%", "", 1); ``$ 5`` → ("5", "", 1). Words inside ``\text`` are always taken for a unit;
    outside, letters might be variables, and only known units are. Text without a unit comes back
    as it is.
    """
    text = text.strip().lstrip("$€£").strip().rstrip("$€£").strip()
    in_text = _TEXT.fullmatch(text)
    match = in_text or _WORDS.fullmatch(text)
    if not match or not match[1].strip():
        return text, "", 1
    number, words = match[1].strip(), " ".join(match[2].lower().rstrip(". ").split())
    power = _POWER.fullmatch(match[3])
    if not power:
        return text, "", 1
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
    unit = _UNITS.get(words, "")
    if not unit and words and not in_text:
        return text, "", 1
    exponent = {"²": "2", "³": "3"}.get(power[2] or "", power[1] or prefix)
    return number, unit + exponent if unit else "", scale
