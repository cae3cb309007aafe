"""Answers as models write them, of each kind that ``docs/answers.md`` lists."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_data import shared_rows
from waterline.rewards import MathVerifier, check_gold, verify_math, verify_math_many
from waterline.rewards.answers.hostile import is_hostile
from waterline.rewards.answers.parts import Parts, parts_of
from waterline.rewards.answers.words import says, words_of

LINES = (Path(__file__).parent / "kinds.jsonl").read_text(encoding="utf-8").splitlines()
CASES: list[dict[str, Any]] = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("kind", list(dict.fromkeys(case["kind"] for case in CASES)))
def test_kind(kind: str) -> None:
    pytest.importorskip("math_verify")
    cases = [case for case in CASES if case["kind"] == kind]
    found = verify_math_many([c["response"] for c in cases], [c["gold"] for c in cases])
    pairs = zip(cases, found, strict=True)
    assert [c for c, v in pairs if (v.verdict == "correct") is not c["right"]] == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(1, 2)", Parts("(", ")", ("1", "2"))),
        ("[0, 1)", Parts("[", ")", ("0", "1"))),
        (r"\left\{1, 2\right\}", Parts("{", "}", ("1", "2"))),
        ("1,2", Parts("", "", ("1", "2"))),
        ("1,000, 2,500 and 3", Parts("", "", ("1,000", "2,500", "3"))),
        ("0,5; 1,5", Parts("", "", ("0,5", "1,5"))),
        ("(1,2), (3,4)", Parts("", "", ("(1,2)", "(3,4)"))),
        ("(x, y) = (1, 2)", Parts("(", ")", ("1", "2"))),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", Parts("matrix 2 2", "", tuple("1234"))),
        (r"[\begin{array}{c} 1 \\[2pt] 2 \end{array}]", Parts("matrix 1 1", "", ("1", "2"))),
        ("1,234", None),
        ("f(1, 2)", None),
        ("(1,2)(3,4)", None),
        (r"(0,1)\cup(2,3)", None),
        ("(1,)", None),
        ("x", None),
        ("", None),
    ],
)
def test_parts(text: str, parts: Parts | None) -> None:
    assert parts_of(text) == parts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("No", "no"),
        (r"\text{An ellipse.}", "ellipse"),
        ("forty-two", "forty two"),
        ("xy", ""),
        ("x", ""),
        ("sin x", ""),
        ("5 apples", ""),
        ("", ""),
    ],
)
def test_words(text: str, words: str) -> None:
    assert words_of(text) == words


def test_a_sentence_that_answers_something_else_says_nothing() -> None:
    assert says("It is a circle.", "ellipse") is None
    assert says("", "ellipse") is None
    assert says("The answer is no.", "yes") is False


@pytest.mark.parametrize(
    ("gold", "problem"),
    [
        ("", "holds no answer"),
        ("  ", "holds no answer"),
        (r"\boxed{}", "holds no answer"),
        (r"\boxed{5", "holds no answer"),
        ("???", "holds no answer"),
        ("Answer is forty three.", "holds no answer"),
        (r"\frac{1}{2", "not closed"),
        (r"\begin{pmatrix} 1 \\ 2", "not closed"),
        ("3 +", "not a whole expression"),
        (r"\frac{1}{}", "not a whole expression"),
        ("x" * 301, "301 characters"),
        ([], "holds none"),
        ([r"\boxed{}", ""], "holds none"),
        (["5", r"\frac{1}{2"], "not closed"),
        (5, "not 5"),
        (None, "not None"),
        ([5], r"not \[5\]"),
    ],
)
def test_a_gold_answer_that_cannot_be_read(gold: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_gold(gold)
    assert verify_math(r"\boxed{5}", gold).verdict == "error"


@pytest.mark.parametrize(
    "gold",
    [
        "5",
        "-1/2",
        "1,234",
        "yes",
        "A",
        r"\emptyset",
        r"2^{4950}",
        r"7^{7^{7^7}}",
        "x+1",
        "['1', '2']",
    ],
)
def test_a_gold_answer_that_can(gold: str) -> None:
    check_gold(gold)
    first = "1" if gold.startswith("[") else gold
    assert verify_math(rf"\boxed{{{first}}}", gold).verdict == "correct"


def test_a_gold_answer_without_bound_meets_its_own_text_alone() -> None:
    assert verify_math(r"\boxed{7}", r"7^{7^{7^7}}").verdict == "unparseable"


def test_gold_answers_are_checked_in_no_time() -> None:
    golds = [str(n) for n in range(5_000)]
    start = time.perf_counter()
    for gold in golds:
        check_gold(gold)
    assert time.perf_counter() - start < 2.5  # 0.1 s when it was written


@pytest.mark.parametrize("name", ["math500/test", "math_lvl3to5/train", "aime25/test"])
def test_every_gold_answer_of_a_data_set_is_read(name: str) -> None:
    for row in shared_rows(f"{name}.jsonl"):
        check_gold(str(row["answer"]))


@pytest.mark.parametrize(
    "text",
    [
        "10^10^10",
        "(10^6)!",
        "1000000!",
        "factorial(10^9)",
        r"\Gamma(10^9)",
        r"\sum_{n=1}^{1000000000} n",
        r"\sum_{n=1}^{10^9} n",
        r"\prod_{n=1}^{500} (x+n)",
        "sum(range(1000000000))",
        r"\binom{100000}{50000}",
        "(a+b+c)^{200}",
        r"\exp(\exp(\exp(10)))",
        "\ud800",
        r"\sqrt" + "{" * 13 + "2" + "}" * 13,
    ],
)
def test_refused_before_it_is_computed(text: str) -> None:
    assert is_hostile(text)
    assert verify_math(rf"\boxed{{{text}}}", "5").verdict == "unparseable"


def test_a_response_beyond_a_million_characters_is_refused() -> None:
    assert verify_math("x" * 10**6 + r"\boxed{5}", "5").verdict == "unparseable"


def test_a_capped_response_is_wrong_when_the_rule_says_so() -> None:
    golds, responses = ["5"] * 3, [r"\boxed{5}", r"\boxed{5}", r"\boxed{6}"]
    complete = np.array([True, False, True])
    found = MathVerifier(max_length_is_wrong=True)(golds, responses, complete)
    assert found.verdict.tolist() == ["correct", "capped", "wrong"]
    assert found.success.tolist() == [True, False, False]
    found = MathVerifier()(golds, responses, complete)
    assert found.verdict.tolist() == ["correct", "correct", "wrong"]
    with pytest.raises(ValueError, match="zip"):
        MathVerifier(max_length_is_wrong=True)(golds[:2], responses, complete)
