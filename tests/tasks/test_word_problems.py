"""Word problems: right answers, disjoint splits, and a tokenizer that loses nothing."""

import random
import re
from fractions import Fraction
from itertools import islice

import pytest

from waterline.rewards import verify_math
from waterline.runs import BadInput
from waterline.tasks.words import WordProblems
from waterline.tasks.words.problems import NAMES, distinct_problems, make_problem
from waterline.tasks.words.tokenizer import INSTRUCTION, word_tokenizer


@pytest.fixture(scope="module")
def task():
    return WordProblems(sft=300, train=64, dev=32, test=50)


@pytest.mark.parametrize("steps", [2, 3, 4, 5])
def test_steps_are_right_and_end_at_the_answer(steps):
    rng = random.Random(steps)
    for _ in range(300):
        problem = make_problem(rng, steps)
        assert len(problem.steps) == steps
        for step in problem.steps:
            a, sign, b, result = re.fullmatch(r"(\d+)([-+*/])(\d+)=(\d+)", step).groups()
            a, b = Fraction(a), Fraction(b)
            found = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[sign]
            assert found == int(result) > 0
        assert problem.steps[-1].endswith(f"={problem.answer}")


def test_each_number_of_the_steps_is_told_or_was_worked_out():
    rng = random.Random(0)
    for _ in range(300):
        problem = make_problem(rng, 4)
        known = set(map(int, re.findall(r"\d+", problem.question)))
        for step in problem.steps:
            a, b, result = map(int, re.findall(r"\d+", step))
            assert {a, b} <= known
            known.add(result)


def test_problems_vary():
    problems = list(islice(distinct_problems(random.Random(0), (2, 3, 4, 5), set(), bool), 500))
    assert len({p.question for p in problems}) == 500
    firsts = {" ".join(p.question.split()[1:3]) for p in problems}
    assert len(firsts) > 10
    assert len({p.answer for p in problems}) > 80
    # A number that is of no use stands in about half of them.
    idle = sum(
        bool(set(re.findall(r"\d+", p.question)) - set(re.findall(r"\d+", " ".join(p.steps))))
        for p in problems
    )
    assert 150 < idle < 350


def test_splits_are_disjoint_and_do_not_depend_on_those_after_them(task):
    questions = [p.text for split in task.splits.values() for p in split]
    assert len(set(questions)) == len(questions) == 446
    ids = [p.id for split in task.splits.values() for p in split]
    assert len(set(ids)) == 446
    other = WordProblems(sft=10, train=80, dev=32, test=50)
    for split in ("dev", "test"):
        assert list(other.splits[split]) == list(task.splits[split])
    assert list(other.splits["train"][:64]) == list(task.splits["train"])
    assert WordProblems(sft=0, train=1, dev=0, test=0, seed=1).splits["train"][0].text != (
        WordProblems(sft=0, train=1, dev=0, test=0).splits["train"][0].text
    )


def test_the_tokenizer_loses_nothing_and_knows_every_word(task):
    tokenizer = task.tokenizer
    assert len(tokenizer) == 196  # conf/policies/small_llama.yaml
    for split in task.splits.values():
        for prompt in split:
            assert tokenizer.unk_token_id not in prompt.tokens
            assert tokenizer.decode(prompt.tokens) == prompt.text
            assert prompt.text.endswith(f"{INSTRUCTION}<|im_end|>\n<|im_start|>assistant\n")
            digits = [t for t in tokenizer.convert_ids_to_tokens(prompt.tokens) if t.isdigit()]
            assert all(len(digit) == 1 for digit in digits)
    assert all(tokenizer.encode(f" {name}") for name in NAMES)


def test_a_demonstration_is_short_ends_and_is_judged_correct(task):
    for prompt in task.splits["sft"]:
        tokens = task.target(prompt)
        assert len(tokens) <= task.max_response == 40
        assert tokens[-1:] == task.stop_tokens
        text = task.tokenizer.decode(tokens, skip_special_tokens=True)
        assert verify_math(text, prompt.answer).verdict == "correct"
        assert verify_math(text, f"{prompt.answer}1").verdict == "wrong"


def test_a_tokenizer_is_one_that_transformers_saves_and_loads(tmp_path, task):
    from transformers import AutoTokenizer

    word_tokenizer().save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    prompt = task.splits["dev"][0]
    assert tuple(loaded.encode(prompt.text, add_special_tokens=False)) == prompt.tokens
    assert loaded.decode(list(prompt.tokens)) == prompt.text


@pytest.mark.parametrize(
    ("setting", "said"),
    [({"train": -1}, "train=-1"), ({"steps": [1]}, "steps="), ({"steps": []}, "steps="),
     ({"max_response": 8}, "max_response=8"), ({"seed": None}, "seed=null")],
)  # fmt: skip
def test_bad_settings_are_a_sentence(setting, said):
    counts = {"sft": 0, "train": 1, "dev": 0, "test": 0}
    with pytest.raises(BadInput, match=said):
        WordProblems(**counts | setting)
