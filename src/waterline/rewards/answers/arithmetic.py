"""Arithmetic over the rationals, in LaTeX or plain text, within strict limits."""

import re
from fractions import Fraction
from math import factorial

_TOKEN = re.compile(
    r"(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)|(?P<frac>\\frac)(?![a-zA-Z])"
    r"|(?P<times>\\cdot(?![a-zA-Z])|\\times(?![a-zA-Z])|\*(?!\*))|(?P<power>\^|\*\*)"
    r"|(?P<mark>[-+/(){}!])|(?P<space>\s+)"
)
_MAX_DEPTH = 12
_MAX_EXPONENT = 10_000
_MAX_FACTORIAL = 3_000
_MAX_BITS = 40_000


class _NotArithmetic(Exception):
    """The text is no arithmetic, or beyond the limits."""


def evaluate(text: str) -> Fraction | None:
    r"""The exact value of an arithmetic expression; None for anything else.

    Integers, decimals, ``1.5e3``, ``+ - * / ^ !``, ``\cdot``, ``\times``, ``\frac``, brackets and
    mixed numbers. Exponents are integers up to ±10,000, numbers have at most 40,000 bits, and
    factorials go to 3,000!; beyond this, and for a division by zero, the answer is None as well.
    """
    try:
        parser = _Parser(text)
        value = parser.sum()
    except (_NotArithmetic, ZeroDivisionError):
        return None
    return None if parser.tokens else value


class _Parser:
    """Recursive descent; each method reads what its name says and returns its value."""

    def __init__(self, text: str) -> None:
        found = list(_TOKEN.finditer(text))
        if "".join(match.group() for match in found) != text:  # something is no token
            raise _NotArithmetic
        named = {"times": "*", "power": "^"}
        words = [named.get(m.lastgroup or "", m.group()) for m in found if m.lastgroup != "space"]
        self.tokens = words[::-1]  # the next one is the last
        self.depth = 0

    def peek(self) -> str:
        return self.tokens[-1] if self.tokens else ""

    def take(self, *allowed: str) -> str:
        if allowed and self.peek() not in allowed:
            raise _NotArithmetic
        return self.tokens.pop()

    def sum(self) -> Fraction:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _NotArithmetic
        value = self.product()
        while self.peek() in ("+", "-"):
            sign = -1 if self.take() == "-" else 1
            value = self.within(value + sign * self.product())
        self.depth -= 1
        return value

    def product(self) -> Fraction:
        value = self.power()
        while self.peek() in ("*", "/"):
            times = self.take() == "*"
            value = self.within(value * self.power() if times else value / self.power())
        return value

    def power(self) -> Fraction:
        if self.peek() in ("+", "-"):
            return -self.power() if self.take() == "-" else self.power()
        whole = self.peek()
        value = self.atom()
        # A whole number directly before a fraction is a mixed number, not a product.
        if whole.isdigit() and (self.peek() == "\\frac" or self.peek().isdigit()):
            return value + self.proper_fraction()
        while self.peek() == "!":
            self.take()
            if value.denominator != 1 or not 0 <= value <= _MAX_FACTORIAL:
                raise _NotArithmetic
            value = Fraction(factorial(value.numerator))
        if self.peek() == "^":
            self.take()
            exponent = self.power() if self.peek() in ("+", "-") else self.atom()
            if exponent.denominator != 1 or abs(exponent) > _MAX_EXPONENT or self.peek() == "^":
                raise _NotArithmetic
            # Before the power is taken: computing a huge one is what the limit is there to avoid.
            bits = max(value.numerator.bit_length(), value.denominator.bit_length())
            if bits * abs(exponent) > _MAX_BITS:
                raise _NotArithmetic
            value = value**exponent.numerator
        return self.within(value)

    def atom(self) -> Fraction:
        token = self.take() if self.tokens else ""
        if token in ("(", "{"):
            value = self.sum()
            self.take(")" if token == "(" else "}")
            return value
        if token == "\\frac":
            top = self.argument()
            return top / self.argument()
        if token and (token[0].isdigit() or token[0] == "."):
            # Fraction would write out all digits of 1e999999999.
            if len(token) > 100 or abs(int(re.split("[eE]", token + "e0")[1])) > _MAX_EXPONENT:
                raise _NotArithmetic
            return Fraction(token)
        raise _NotArithmetic

    def argument(self) -> Fraction:
        r"""A group in braces, or the one digit that LaTeX takes: ``\frac12`` is a half."""
        if self.peek().isdigit() and len(self.peek()) > 1:
            token = self.take()
            self.tokens.append(token[1:])
            return Fraction(token[0])
        return self.atom()

    def proper_fraction(self) -> Fraction:
        """What follows the whole part of a mixed number: below one, of whole numbers."""
        if self.peek() == "\\frac":
            value = self.atom()
        else:
            top = self.atom()
            self.take("/")
            if not self.peek().isdigit():
                raise _NotArithmetic
            value = top / self.atom()
        if not 0 < value < 1 or self.peek() in ("^", "!"):
            raise _NotArithmetic
        return value

    @staticmethod
    def within(value: Fraction) -> Fraction:
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
            raise _NotArithmetic
        return value
