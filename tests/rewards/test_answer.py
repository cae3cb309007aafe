import pytest

from waterline.rewards.answers.answer import find_answer
from waterline.rewards.answers.choice import find_choice
from waterline.rewards.answers.hostile import is_hostile
from waterline.rewards.answers.latex import boxes, plain_words
from waterline.rewards.answers.prose import find_list


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"First \boxed{4}, but no: \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed{4} and \boxed{7}", "4, 7"),
        (r"\boxed{4}, \(\boxed{7}\)", "4, 7"),
        (r"\boxed{4} is wrong, so \boxed{7}", "7"),
        (r"\boxed{4}. Checking: \boxed{4}", "4"),
        (r"\boxed{\text{a } \{1\}}", r"\text{a } \{1\}"),
        (r"\boxed 9", "9"),
        (r"\boxed{}", None),
        (r"so \boxed{12", None),
        (r"<think>\boxed{1}</think> hence 2", "2"),
        ("9 * 2 = 18\n#### 1,800", "1,800"),
        ("#### 5 \nand then\n#### -6.", "-6"),
        ("\\boxed{3}\n#### Why it holds", "3"),
        ("\\boxed{3}\n#### 1. Why it holds", "3"),
        (r"By \boxed{200} it grows. The final answer is $455$. I hope it is correct.", "455"),
        (r"The final answer is 7. Indeed \boxed{8}", "8"),
        ("The answer is 12 because 3 * 4 = 12 and not 13.", "12"),
        ("The answer is: $x+1$", "x+1"),
        ("It is 5 pens, all in all.", "5"),
        ("It costs $1,250.75 in total", "$1,250.75"),
        ("between 3 and 8, so -2", "-2"),
        ("10-4", "10-4"),
        ("it is 1,6001", None),
        ("we get 3/4 of it", "3/4"),
        (r"Thus \(a+b\) follows", "a+b"),
        ("AB7C9X", None),
        ("the code AB7C is odd", None),
        ("No idea.", None),
        ("", None),
    ],
)
def test_one_answer(response: str, answer: str | None) -> None:
    found = find_answer(response)
    assert (found.text if found else None) == answer


def test_two_numbers_are_no_answer() -> None:
    found = find_answer("The result might be 4 or 5")
    assert found is not None
    assert found.text == "4, 5"


def test_lists_of_mathematics() -> None:
    assert find_list("$4$, $5$ and $6$") == "4, 5, 6"
    assert find_list("$4$") is None
    assert find_list("from $4$ follows $5$") is None


def test_choices() -> None:
    assert find_choice("A is out. The answer is (B), as C is too large") == "B"
    assert find_choice("So it must be D.") == "D"
    assert find_choice("nothing") is None


def test_boxes_match_braces() -> None:
    assert [b[2] for b in boxes(r"\boxed{a_{1}} \boxed{\}} \fbox{\boxed{3}}")] == [
        "a_{1}",
        r"\}",
        r"\boxed{3}",
    ]


def test_words() -> None:
    assert plain_words(r"\text{(C)}") == plain_words("C") == plain_words(r"\textbf{ (C) }")
    assert plain_words(r"\text{Monday}") == plain_words("monday")
    assert plain_words("x") != plain_words("X")


@pytest.mark.parametrize(
    "text",
    [
        "1" * 90,
        "x" * 301,
        "(10^{9})!",
        "n!",
        "3^{3^{3}}",
        "3^3^3",
        r"\sum_{k=1}^{10^8} k",
        r"\sum_{k=1}^{100000000} k",
        "2^{1001}",
        "1e5000",
        "x^{a^b}",
        r"5^{7} \bmod 11",
        "(" * 13 + "1" + ")" * 13,
        "x\0",
    ],
)
def test_refused(text: str) -> None:
    assert is_hostile(text)


@pytest.mark.parametrize(
    "text",
    [r"\frac{3}{56}", "x^2+2x+1", r"2^{10}\!", "x != 3", r"e^{2x}", r"\sqrt{x^2+1}", "(a+b)^{12}"],
)
def test_not_refused(text: str) -> None:
    assert not is_hostile(text)
