"""Answers of several parts: points, intervals, sets and lists, compared part by part."""

import re
from dataclasses import dataclass

from waterline.rewards.answers.exact import read_numbers, same_number
from waterline.rewards.answers.latex import plain_words, simplify

_MAX_PARTS = 16
_NAMES = re.compile(
    r"\(?\s*[A-Za-z](?:_\{?\w+\}?)?(?:\s*,\s*[A-Za-z](?:_\{?\w+\}?)?)*\s*\)?\s*(?:=|\\in)\s*(?=[(\[]|\\\{)"
)
_NAME = re.compile(r"([A-Za-z]+)(?:_\{?\w+\}?)?\s*=(?!=)")
_TOKEN = re.compile(
    r"(?P<open>\\\{|[(\[{])|(?P<close>\\\}|[)\]}])|(?P<semicolon>;)"
    r"|(?P<word>\\text\s*\{\s*,?\s*(?:and|or)\s*\}|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z]))"
    r"|(?P<comma>,)"
)
_MATRIX = re.compile(
    r"(?:\\?[A-Za-z]\w*\s*=|\\(?:mathbf|vec)\s*\{\s*\w\s*\}\s*=)?\s*[(\[]?\s*"
    r"\\begin\s*\{(?:[pb]?(?:small)?matrix|array)\*?\}(?:\s*\{[lcr|\s]*\})?"
    r"(.*)\\end\s*\{[a-z]+\*?\}\s*[)\]]?",
    re.DOTALL,
)
_ORDER = r"(?:[<>]=?|\\(?:[lg]eq?|[lg]t|[lg]eqslant)(?![a-zA-Z]))"
_CHAIN = re.compile(
    rf"(?:(?P<low>[^<>=]+?)\s*(?P<a>{_ORDER})\s*)?[A-Za-z]\s*(?:(?P<b>{_ORDER})\s*(?P<high>[^<>=]+))?"
)
_ROW = re.compile(r"(?:\\\\\s*)+(?:\[[^\]]*\])?")
_THOUSAND = re.compile(r"(?<!\d)[1-9]\d{0,2}(?:,\d{3})*,\d{3}(?!\d)")


@dataclass(frozen=True, slots=True)
class Parts:
    """At least two parts, and the brackets around them: '' for a list without any."""

    opening: str
    closing: str
    items: tuple[str, ...]

    @property
    def ordered(self) -> bool:
        """Whether the order of the parts matters: in points, intervals and matrices."""
        return self.opening not in ("", "{")


def parts_of(text: str) -> Parts | None:
    """The parts of an answer, or None when it is one thing (a number, a matrix, a union, …).

    They stand between semicolons, or else between commas, 'and' and 'or'. Those of a matrix are its
    entries, row by row, whatever brackets are around it; ``opening`` tells how many each row has.
    """
    text = _NAMES.sub("", simplify(text).replace("$", ""), count=1)
    if (matrix := _MATRIX.fullmatch(text)) is not None:
        rows = [row.split("&") for row in _ROW.split(matrix[1].strip()) if row.strip()]
        entries = tuple(entry.strip() for row in rows for entry in row)
        shape = "matrix " + " ".join(str(len(row)) for row in rows)
        return Parts(shape, "", entries) if 2 <= len(entries) <= _MAX_PARTS else None
    if r"\begin" in text or r"\cup" in text:
        return None
    opening = closing = ""
    inside = re.fullmatch(r"(\\\{|[(\[\]{])(.*?)(\\\}|[)\]\[}])", text, re.DOTALL)
    if inside and _is_one_group(inside[2]):
        opening, text, closing = inside.groups()
        # Braces without a backslash are not printed, so that ${1, 3}$ is a list.
        opening, closing = opening.strip("{"), closing.strip("}")
        opening, closing = opening.replace("\\", "{"), closing.replace("\\", "}")
    items = _split(text, bool(opening))
    if any(re.fullmatch(r"0\d+", item) for item in items):
        return None  # (1,000) is one number
    if not 2 <= len(items) <= _MAX_PARTS or not all(items):
        return None
    return Parts(opening, closing, items)


def interval_of(text: str) -> Parts | None:
    r"""The interval of an inequality in one letter: ``2 < x \le 3`` is (2, 3]."""
    chain = _CHAIN.fullmatch(simplify(text).replace("$", ""))
    if not chain:
        return None
    low, high = chain["low"], chain["high"]
    if low is None and high is None:
        return None
    closed = {name: "e" in (chain[name] or "") or "=" in (chain[name] or "") for name in ("a", "b")}
    ends = [(low, closed["a"]), (high, closed["b"])]
    if any(">" in chain[n] or "g" in chain[n] for n in ("a", "b") if chain[n]):
        ends.reverse()
    (left, left_closed), (right, right_closed) = ends
    return Parts(
        "[" if left_closed else "(", "]" if right_closed else ")",
        (left or r"-\infty", right or r"\infty"),
    )  # fmt: skip


def _is_one_group(text: str) -> bool:
    """Whether no bracket that was opened before ``text`` is closed within it."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += {"open": 1, "close": -1}.get(token.lastgroup or "", 0)
        if depth < 0:
            return False
    return depth == 0


def _split(text: str, in_brackets: bool) -> tuple[str, ...]:
    # A list without brackets may hold thousands: 1,000 and 2,500.
    thousands = [] if in_brackets else [m.span() for m in _THOUSAND.finditer(text)]
    depth, cuts = 0, []
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup or ""
        depth += {"open": 1, "close": -1}.get(kind, 0)
        inner = any(begin < token.start() < end for begin, end in thousands)
        if depth == 0 and kind in ("semicolon", "word", "comma") and not inner:
            cuts.append((kind, token.start(), token.end()))
    if any(kind == "semicolon" for kind, _, _ in cuts):
        cuts = [cut for cut in cuts if cut[0] == "semicolon"]
    items, begin = [], 0
    for kind, start, end in cuts:
        piece = text[begin:start].strip()
        if piece or kind != "word":  # ", and" is one cut
            items.append(piece)
        begin = end
    return (*items, text[begin:].strip())


def _same(gold: str, answer: str) -> bool | None:
    """Whether two parts are the same; None when only Math-Verify can say."""
    numbers = read_numbers(gold, answer)
    if numbers[0] and numbers[1]:
        return same_number(numbers[0], numbers[1])
    if plain_words(gold).lstrip("+") == plain_words(answer).lstrip("+"):
        return True
    return None


def same_parts(gold: Parts, answer: Parts) -> bool | None:
    """Whether all parts are the same, in order where it matters; None when it cannot be said here.

    A half-open or closed interval needs the same brackets; a point may be given as a list and a
    list as a point. Where the parts of both have names (``x = 2, y = 3``), they are told apart.
    """
    if len(gold.items) != len(answer.items):
        # Sets may repeat themselves, and a product of matrices looks like one of many entries.
        sets = gold.opening == answer.opening == "{" or "matrix" in gold.opening
        return None if sets or any(r"\pm" in item for item in gold.items + answer.items) else False
    brackets = {(gold.opening, gold.closing), (answer.opening, answer.closing)}
    if len(brackets) > 1 and not brackets <= {("", ""), ("(", ")"), ("{", "}")}:
        return None
    if {gold.opening, answer.opening} == {"(", "{"}:
        return False  # a point and a set
    names = [[(m[1] if (m := _NAME.match(i)) else "") for i in p.items] for p in (gold, answer)]
    pairs = zip(names[0], names[1], gold.items, answer.items, strict=True)
    if gold.ordered:
        told = [_same(g, a) if not (n and m) or n == m else None for n, m, g, a in pairs]
        return False if False in told else (None if None in told else True)
    left = list(zip(names[1], answer.items, strict=True))
    unsure = False
    for name, item in zip(names[0], gold.items, strict=True):
        for candidate in left:
            if name and candidate[0] and name != candidate[0]:
                continue
            told_one = _same(item, candidate[1])
            unsure |= told_one is None
            if told_one:
                left.remove(candidate)
                break
    return not left or (None if unsure else False)
