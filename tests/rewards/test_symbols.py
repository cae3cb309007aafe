import pytest

from waterline.rewards import verify_math
from waterline.rewards.answers.symbols import latex_symbols, plain_characters


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("1½", r"1\frac{1}{2}"),
        ("⅔", r"\frac{2}{3}"),
        ("1⁄2", "1/2"),
        ("x²³", "x^{23}"),
        ("10⁻³", "10^{-3}"),
        ("a₁₂", "a_{12}"),
        ("√12", r"\sqrt{12}"),
        ("√(x+1)", r"\sqrt{x+1}"),
        ("∛2", r"\sqrt[3]{2}"),
        ("4πr²", r"4\pi r^{2}"),
        ("(−∞, 2]", r"(-\infty , 2]"),
        ("x≤5", r"x\le 5"),
        ("θ Λ", r"\theta  \Lambda "),
        ("ℝ", r"\mathbb{R}"),
        ("90º", "90°"),
        ("plain", "plain"),
        ("é ①\ud800", "é ①\ud800"),
    ],
)
def test_symbols(text: str, latex: str) -> None:
    assert latex_symbols(text) == latex


def test_plain_characters_change_no_meaning() -> None:
    assert plain_characters("（１，２）＋𝑥\u202f−\u200b５٪。") == "(1,2)+x -5%."
    assert plain_characters("½ x² √2 π") == "½ x² √2 π"


EQUAL = [
    ("1/2", "½"), ("2/3", "⅔"), ("3/2", "1½"), ("-3/2", "−1½"), ("1/2", "1⁄2"), ("1000", "10³"),
    ("1/1000", "10⁻³"), ("6", "2×3"), ("6", "2·3"), ("2", "6÷3"), ("-5", "−5"), ("-5", "–5"),
    ("90", "90°"), ("12.5", "１２．５"), ("50%", "５０％"), ("25", "٢٥"), ("1000", "1\u00a0000"),
    ("1000", "1\u2009000"), ("15", "1\u200b5"), ("1500", "1.5×10³"), ("312_4", "312₄"),
    ("5", "x＝5"), ("(1,2)", "（1，2）"), ("1500", "1.5 x 10^3"), ("2.75", "2{,}75"), ("5", "5=x"),
    ("5", r"\approx 5"), ("5", r"\color{red}{5}"), ("1/2", r"\nicefrac{1}{2}"), ("15", r"\$15"),
    ("15", "€15"), (r"60\text{ mph}", "60 miles per hour"), (r"5\text{ cents}", "5¢"),
    (r"\text{Monday}", r"\text{monday.}"),
]  # fmt: skip
DIFFERENT = [
    ("1", "½"), ("12", "½"), ("2", "1½"), ("11/2", "1½"), ("102", "10²"), ("32", "3²"),
    ("1/3", "⅔"), ("5", "−5"), ("312", "312₄"), ("12", "1 2"), (r"0.5\%", r"50\%"), ("5", "x > 5"),
    ("5", r"x \ne 5"), ("1.5", "1⁄5"), (r"\$15", r"15\text{ cents}"), (r"15\text{ cents}", r"\$15"),
    (r"\$15", "€15"), (r"15\text{ km/h}", r"15\text{ m/s}"), (r"15\text{ mph}", "15 km/h"),
    (r"15\text{ m}", r"15\text{ m/s}"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_equal_without_a_worker(gold: str, answer: str) -> None:
    assert verify_math(rf"\boxed{{{answer}}}", gold).verdict == "correct"


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_different(gold: str, answer: str) -> None:
    assert verify_math(rf"\boxed{{{answer}}}", gold).verdict == "wrong"


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        (r"\sqrt{12}", "√12", True),
        (r"2\sqrt{3}", "√12", True),
        (r"\sqrt{x+1}", "√(x+1)", True),
        (r"\sqrt[3]{2}", "∛2", True),
        ("x^2", "x²", True),
        ("x^{1/2}", "x^½", True),
        (r"\frac{x}{2}", "½x", True),
        (r"4\pi r^2", "4πr²", True),
        (r"(-\infty,2]", "(−∞, 2]", True),
        (r"x\le 5", "x≤5", True),
        (r"(0,1)\cup(2,3)", "(0,1)∪(2,3)", True),
        (r"\emptyset", r"\varnothing", True),
        (r"\theta+1", "θ+1", True),
        ("x_1", "x₁", True),
        ("14-i", "14.0 + -1.0i", True),
        ("2", "√2", False),
        ("6", "√6", False),
        ("2", "∛2", False),
        ("12", "√12", False),
        ("2", "2π", False),
        ("x^2", "2x", False),
        ("5", r"5 \text{ (or 7)}", False),
        ("5", r"5 \text{ or } 7", False),
        ("5", r"5 \quad 7", False),
    ],
)
def test_by_math_verify(gold: str, answer: str, right: bool) -> None:
    pytest.importorskip("math_verify")
    assert (verify_math(rf"\boxed{{{answer}}}", gold).verdict == "correct") is right
    if right:
        assert verify_math(rf"\boxed{{{gold}}}", answer).verdict == "correct"
