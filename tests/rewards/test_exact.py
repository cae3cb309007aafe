from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterline.rewards.answers.arithmetic import evaluate
from waterline.rewards.answers.exact import exact_number, read_numbers, same_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17", 17),
        ("-3.50", Fraction(-7, 2)),
        (".25", Fraction(1, 4)),
        ("8.", 8),
        ("2+3*4", 14),
        ("(2+3)*4", 20),
        ("2 - -3", 5),
        ("-2^2", -4),
        ("2^{-3}", Fraction(1, 8)),
        ("2**10", 1024),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"\frac34", Fraction(3, 4)),
        (r"\frac{1}{2^{70}}", Fraction(1, 2**70)),
        (r"3\cdot 10^{8}", 3 * 10**8),
        (r"1.5\times10^{-3}", Fraction(3, 2000)),
        ("2.5e3", 2500),
        ("4!", 24),
        ("3 1/4", Fraction(13, 4)),
        (r"7\frac{2}{5}", Fraction(37, 5)),
        ("-3 1/4", Fraction(-13, 4)),
    ],
)
def test_arithmetic(text: str, value: Fraction) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "2x",
        "1/0",
        "2^",
        "(1",
        "1)",
        "2^3^2",
        "2^{1.5}",
        "9^{99999}",
        "1e99999",
        "4000!",
        "\\sqrt{4}",
        "1 2",
        "1,2",
        "3 5/4",
        "1 1/2 1/3",
        "\\frac{1}",
        "((((((((((((((1))))))))))))))",
    ],
)
def test_what_is_not_arithmetic(text: str) -> None:
    assert evaluate(text) is None


@given(st.fractions(max_denominator=10**6))
def test_fractions_round_trip(value: Fraction) -> None:
    sign = "-" if value < 0 else ""
    latex = rf"{sign}\dfrac{{{abs(value.numerator)}}}{{{value.denominator}}}"
    for text in (str(value), latex, f"${latex}$"):
        number = exact_number(text)
        assert number is not None
        assert number.value == value


def same(gold: str, answer: str) -> bool | None:
    a, b = read_numbers(gold, answer)
    return same_number(a, b) if a and b else None


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        # thousands
        ("52300", "52,300", True),
        ("52300", "52{,}300", True),
        ("52300", r"52\,300", True),
        ("52300", "52 300", True),
        ("52300", r"52,\! 300", True),
        # the comma of decimals, beside a decimal only
        ("87.25", "87,25", True),
        ("87", "87,25", None),
        # per cent
        (r"45\%", "45", True),
        (r"45\%", "0.45", True),
        (r"45\%", "45 percent", True),
        ("45", r"45\%", True),
        ("0.45", "45", False),
        ("0.45", "45%", True),
        # mixed numbers
        ("4", "4 1/3", False),
        ("13/3", "4 1/3", True),
        (r"\frac{13}{3}", r"4\frac{1}{3}", True),
        # tiny and huge numbers
        ("0.00000003", "0.00000004", False),
        (r"\frac{1}{3^{80}}", r"\frac{1}{3^{81}}", False),
        ("1000000000000000000001", "1000000000000000000000", False),
        (r"3.1\times10^{25}", "3.1e25", True),
        # decimals that round a fraction need six places
        (r"\frac{1}{7}", "0.1428571", True),
        (r"\frac{1}{7}", "0.142857143", True),
        (r"\frac{1}{7}", "0.1429", False),
        (r"\frac{2}{3}", "0.6666666", True),
        ("8", "8.0000001", False),
        ("8", "8.00", True),
        # units
        (r"12\text{ cm}", "12 km", False),
        (r"12\text{ cm}", "12 cm", True),
        (r"12\text{ cm}", "12 centimeters", True),
        (r"12\text{ cm}^2", r"12\text{ cm}", False),
        (r"12\text{ cm}^2", "12 square centimeters", True),
        (r"12\text{ cm}", "12", True),
        ("12", r"12\text{ apples}", True),
        (r"\$9.50", "9.5", True),
        (r"60^\circ", "60", True),
        (r"60^\circ", r"60\text{ degrees}", True),
        ("7", "7 million", False),
        ("7000000", "7 million", True),
        # numerals in a base
        ("312_4", "312", False),
        ("312_4", "312_{4}", True),
        ("312_4", "312_5", False),
        ("312_4", "54", False),
        # assignments
        ("9", "x = 9", True),
        ("9", "a_1 = 9", True),
        ("9", "9x", None),
    ],
)
def test_same_number(gold: str, answer: str, expected: bool | None) -> None:
    assert same(gold, answer) is expected
