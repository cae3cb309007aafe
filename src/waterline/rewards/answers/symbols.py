"""Characters beyond ASCII, spelled as the parsers of answers expect them."""

import re
import unicodedata
from functools import lru_cache

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
# Signs that decomposition keeps apart from their plain twins.
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe58", "-"),
        **dict.fromkeys("\u2044\u2215", "/"),
        "\u3001": ",",
        "\u3002": ".",
        "\u066b": ".",
        "\u066c": ",",
        "\u066a": "%",
        "º": "°",
    }
)
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱˣ]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₙₖ]+")
_ROOT = re.compile(r"([√∛∜])\s*(\d+(?:\.\d+)?|[A-Za-z](?![A-Za-z])|\([^()]*\)|\{[^{}]*\})?")
_LATEX = {
    "∞": "infty", "≤": "le", "≥": "ge", "⩽": "le", "⩾": "ge", "≠": "ne", "≈": "approx",
    "±": "pm", "∓": "mp", "×": "times", "·": "cdot", "⋅": "cdot", "∙": "cdot",
    "∪": "cup", "∩": "cap", "∈": "in", "∅": "emptyset", "∖": "setminus", "→": "to",
    "⌊": "lfloor", "⌋": "rfloor", "⌈": "lceil", "⌉": "rceil", "∠": "angle",
}  # fmt: skip


@lru_cache(maxsize=4_096)
def _plain(character: str) -> str:
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    kind = unicodedata.decomposition(character).partition(" ")[0]
    # The letters of number sets keep their double stroke: a plain R is a variable.
    if kind in ("<wide>", "<narrow>", "<small>", "<noBreak>", "<font>") and not (
        unicodedata.name(character, "").startswith("DOUBLE-STRUCK")
    ):
        character = unicodedata.normalize("NFKC", character)
    category = unicodedata.category(character[0])
    if category in ("Zs", "Cf"):  # blanks; signs without width and direction marks
        return " " if category == "Zs" else ""
    return character.translate(_PLAIN)


def plain_characters(text: str) -> str:
    """``text`` with ASCII digits, blanks, minus signs, slashes and letters of full width.

    Invisible characters go. Whatever has a meaning of its own, as ``½`` and ``²``, stays.
    """
    return text if text.isascii() else _BEYOND_ASCII.sub(lambda match: _plain(match[0]), text)


@lru_cache(maxsize=4_096)
def _latex(character: str) -> str:
    if character in _LATEX:
        return rf"\{_LATEX[character]} "
    if unicodedata.decomposition(character).startswith("<fraction>"):
        top, _, bottom = unicodedata.normalize("NFKC", character).partition("\u2044")
        return rf"\frac{{{top}}}{{{bottom}}}" if bottom else character
    name = unicodedata.name(character, "")
    if name.startswith("DOUBLE-STRUCK CAPITAL"):
        return rf"\mathbb{{{unicodedata.normalize('NFKC', character)}}}"
    greek = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER ([A-Z]+)", name)
    if greek:
        letter = greek[2].replace("LAMDA", "LAMBDA").lower()
        return rf"\{letter if greek[1] == 'SMALL' else letter.title()} "
    return character


def latex_symbols(text: str) -> str:
    r"""``text`` with LaTeX for mathematical characters: ``1½`` is ``1\frac{1}{2}``.

    Raised and lowered characters become exponents and subscripts, ``√12`` the root of 12; Greek
    letters, relations, operators and the letters of number sets their commands.
    """
    text = plain_characters(text)
    if text.isascii():
        return text
    text = _RAISED.sub(lambda match: f"^{{{_level(match[0])}}}", text)
    text = _LOWERED.sub(lambda match: f"_{{{_level(match[0])}}}", text)
    text = _ROOT.sub(_root, text.replace("÷", "/"))
    return _BEYOND_ASCII.sub(lambda match: _latex(match[0]), text)


def _level(text: str) -> str:
    return plain_characters(unicodedata.normalize("NFKC", text))


def _root(match: re.Match[str]) -> str:
    degree = {"√": "", "∛": "[3]", "∜": "[4]"}[match[1]]
    radicand = (match[2] or "").strip("(){}")
    return rf"\sqrt{degree}{{{radicand}}}" if radicand else rf"\sqrt{degree} "
