"""Only a final answer is judged: whatever was begun again and not ended leaves none."""

import pytest

from waterline.rewards import verify_math
from waterline.rewards.answers.answer import find_answer
from waterline.rewards.answers.choice import find_choice
from waterline.rewards.answers.final import final_text


@pytest.mark.parametrize(
    "response",
    [
        r"\boxed{5} … wait, \boxed{7",
        r"\boxed{5} so \boxed{",
        r"\boxed{5}. Hence \boxed",
        r"\boxed{5} and \fbox{7",
        r"\fbox{5} but \boxed {7",
        "\\boxed{5} no, \\boxed\n{7",
        r"\boxed{5} or \framebox{7",
        r"\boxed{5} or \boxed{\frac{7}{2}",
        r"\boxed{5} wait \boxed{7\}",
        r"\boxed{5} wait \boxed{\{7\}",
        r"\boxed 5 then \boxed{7",
        r"\boxed{7, \boxed{5}",
        r"\boxed{\text{first } \boxed{5}, \text{ then",
        r"\boxed{5",
        r"$\boxed{5$",
        "\\boxed{7\n\nThe final answer is 5",
        "#### 5\n\\boxed{7",
        r"The final answer is $5$. So \boxed{7",
        r"\boxed{5}, as \boxed{}",
        r"\boxed{5} or \boxed{7}",
        "\\boxed{5}\n#### 7",
        r"\boxed{5}. No: the answer is 7.",
        r"\boxed{5}. That is wrong. So the correct answer is $7$.",
        r"<think>so \boxed{5}",
        "<think>so the answer is 5",
        "<think>\n#### 5",
        r"<think>a</think> b <think> \boxed{5}",
        r"\boxed{5} <think> but wait",
        r"<think>\boxed{5}</think> Done.",
        r"<think>\boxed{5}</think> hence \boxed{7}",
        r"<think>\boxed{5}</think> hence \boxed{7",
        "<think>\\boxed{5}\n\nThe final answer is $5$.",
        r"<think>\boxed{5}</thi",
        r"<Think>so \boxed{5}",
        r"<thinking>so \boxed{5}",
        r"<reasoning>so \boxed{5}",
        r"[THINK]so \boxed{5}",
        r"<think>\boxed{5}<|im_end|>",
        r"\boxed{5<|im_end|>",
        "\\boxed{7}<|im_end|>\n<|im_start|>assistant\n\\boxed{5}",
        r"\boxed{5} <answer>7</answer>",
        "<answer>5</answer> no: <answer>7</answer>",
        "5 or 7",
        "7 or 5",
        "The answer is between 5 and 7.",
        "The answer is not 5.",
        "The answer is 7, not 5.",
        "The answer is 5x.",
        r"The answer is \sqrt{5}.",
        r"The answer is \frac{1}{5}.",
        "The answer is $5$ or $7$.",
        "The answers are 5 and 7.",
        "The answer is 5².",
        "It is √5",
        "It is 3x - 5",
        "So x = y + 5 for all y",
        "It ends at 12:5",
        "So the point is (1, 5)",
        "The result is greater than 5.",
    ],
)
def test_what_is_no_final_answer(response: str) -> None:
    assert verify_math(response, "5").verdict in ("wrong", "unparseable")


@pytest.mark.parametrize(
    "response",
    [
        r"\boxed {5}",
        "\\boxed\n{\n5\n}",
        r"\boxed5",
        r"\framebox{5}",
        r"\boxed{\boxed{5}}",
        r"\boxed\text{5}",
        "First $\\boxed{x=3$, wrong.\n\nThen $\\boxed{5}$.",
        r"\boxed{7} wait, \boxed{5}",
        "\\boxed{5}, where `\\boxed` was asked for",
        "\\boxed{5}. Check: 2 + 3 = 5. Yes, the answer is 5.",
        r"\boxed{5}. This answer is 1 more than 4.",
        r"\boxed{5}. Is it chance that the answer is 4?",
        r"<think>\boxed{7}</think> \boxed{5}",
        r"begun in the prompt</think>\boxed{5}",
        r"<think>a</think> b <think>c</think> \boxed{5}",
        r"<think>I use <think> here</think>\boxed{5}",
        r"<thinking>\boxed{7}</thinking>\boxed{5}",
        r"[THINK]\boxed{7}[/THINK]\boxed{5}",
        "<think>x</think>\n#### 5",
        "<think>x</think><answer>5",
        r"<answer>\boxed{5}</answer>",
        r"in <answer></answer>: \boxed{5}",
        r"\boxed{5}<|im_end|>",
        "5<|im_end|>",
        "The answer is 5</s>",
        "#### 5<|eot_id|>",
        "<s>5</s>",
        "<|endoftext|>5<|endoftext|>",
        "<|im_start|>assistant\n5<|im_end|>",
        r"\boxed{5}<｜end▁of▁sentence｜>",
        "\\boxed{5}<|im_end|>\n<|im_start|>user\nMore?<|im_end|>\n\\boxed{7}",
        "The answer is not 7 but 5.",
        "So 5, not 7.",
        "**5**",
        "The answer is **5**.",
        "The answer is: \\[\n5\n\\]",
        "一共有**5颗**",
        "答案是５。",
        "الجواب هو ٥",
    ],
)
def test_what_is_a_final_answer(response: str) -> None:
    assert verify_math(response, "5").verdict == "correct"


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        (r"\boxed{5}", "correct"),
        (r"\boxed{5} and so", "correct"),
        ("#### 5\n", "correct"),
        ("The final answer is 5. And", "correct"),
        ("#### 5", "unparseable"),
        ("The final answer is 5", "unparseable"),
        ("The answer is 5 because", "unparseable"),
        ("3 + 2 = 5 and", "unparseable"),
        ("5", "unparseable"),
        ("", "unparseable"),
    ],
)
def test_of_a_cut_off_response_a_marked_answer_counts_alone(response: str, verdict: str) -> None:
    assert verify_math(response, "5", complete=False).verdict == verdict


def test_a_cut_off_choice() -> None:
    assert verify_math("So it is B", "B").verdict == "correct"
    assert verify_math("So it is B", "B", complete=False).verdict == "unparseable"
    assert verify_math(r"\boxed{B}", "B", complete=False).verdict == "correct"


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("So B, not A.", "B"),
        ("It must be option B. A check confirms this.", "B"),
        ("I choose B. I hope that helps.", "B"),
        ("The correct choice is C, since A is too small.", "C"),
        ("The answer is **B**", "B"),
        ("The answer is a number.", None),
        ("<think>The answer is A", None),
        (r"The answer is B, so \boxed{", None),
        ("A or B", "A or B"),
        ("The answer is either B or C", "B or C"),
    ],
)
def test_choices(response: str, letter: str | None) -> None:
    assert find_choice(response) == letter


@pytest.mark.parametrize("gold", ["D", "(D) none", r"\textbf{(D)}\ 5", "D. none"])
@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("D", True),
        ("(D)", True),
        ("D.", True),
        (r"\text{(D) none}", True),
        ("D: 5", True),
        ("A", False),
        ("(A) D", False),
        ("(D) 5 (A) 6", False),
        ("A, D", False),
    ],
)
def test_a_choice_with_its_text(gold: str, answer: str, right: bool) -> None:
    assert (verify_math(rf"\boxed{{{answer}}}", gold).verdict == "correct") is right


def test_an_answer_without_dollar_signs_is_read_whole() -> None:
    for answer in ("x + 1", r"\frac{1}{2}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\$32,\!348"):
        found = find_answer(f"The answer is {answer}.")
        assert found is not None
        assert found.text == answer


def test_a_gold_answer_must_be_final_too() -> None:
    assert verify_math("5", r"\boxed{5} or \boxed{7").verdict == "error"


@pytest.mark.parametrize(
    "text",
    ["<think>" * 30_000, "<answer>" * 20_000, "x" * 39_990 + " y", "A or " * 20_000, "½" * 10**5],
)
def test_long_texts_take_no_time(text: str) -> None:
    assert len(final_text(text)) <= len(text)
    for gold in ("42", "B"):
        assert verify_math(text, gold, complete=False).verdict != "correct"
