"""Data sets of mathematics: rows, prompts, what is left out, and what is refused."""

import copy
import json

import pytest

from shared_data import shared_rows
from waterline.rewards import check_gold
from waterline.runs import BadInput
from waterline.tasks.mathematics import DATA_SETS, MathProblems
from waterline.tasks.mathematics.sources import from_file, items_of, reader
from waterline.tasks.words.tokenizer import word_tokenizer

ROWS = [{"question": f"How many are {i} and {i + 1}?", "answer": str(2 * i + 1)} for i in range(12)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    word_tokenizer().save_pretrained(folder)
    return str(folder)


def written(folder, rows, name="rows.jsonl"):
    file = folder / name
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return str(file)


def made(tokenizer, folder, rows=ROWS, **settings):
    settings.setdefault("instruction", "Think.")
    return MathProblems(tokenizer=tokenizer, train_file=written(folder, rows), **settings)


def test_a_prompt_is_the_question_the_joint_and_the_instruction_by_the_template(
    tokenizer, tmp_path
):
    task = made(tokenizer, tmp_path, joint="\n", instruction=r"Put it in \boxed{{}}.")
    first = task.splits["train"][0]
    asked = "How many are 0 and 1?\nPut it in \\boxed{{}}."
    assert first.text == task.tokenizer.apply_chat_template(
        [{"role": "user", "content": asked}], add_generation_prompt=True, tokenize=False
    )
    assert asked in first.text
    assert list(first.tokens) == task.tokenizer.encode(first.text, add_special_tokens=False)
    assert (first.id, first.answer) == (0, "1")


def test_what_is_left_out_is_counted_and_changes_no_id(tokenizer, tmp_path):
    rows = [*ROWS[:3], {"question": "many " * 700, "answer": "1"}, *ROWS[3:], ROWS[0]]
    task = made(tokenizer, tmp_path, rows)
    prompts = task.splits["train"]
    assert [p.id for p in prompts] == [0, 1, 2, *range(4, 13)]
    assert "train: 1 of 14 prompts have more than 512 tokens and are left out" in task.notices()
    assert "train: 1 questions occur twice; the first is kept" in task.notices()


def test_rows_are_chosen_by_their_seed_in_the_order_of_the_data_set(tokenizer, tmp_path):
    ids = [
        [p.id for p in made(tokenizer, tmp_path, train_rows=5, rows_seed=s).splits["train"]]
        for s in (0, 0, 1)
    ]
    assert ids[0] == ids[1] == sorted(ids[0])
    assert ids[0] != ids[2]
    with pytest.raises(BadInput, match=r"task\.train_rows=13: there are 12 prompts"):
        _ = made(tokenizer, tmp_path, train_rows=13).splits


def test_questions_of_train_in_the_test_set_are_reported(tokenizer, tmp_path):
    test = written(tmp_path, [ROWS[1], {"question": "Another?", "answer": "1"}], "test.jsonl")
    task = made(tokenizer, tmp_path, test_file=test)
    assert "1 of the 2 questions of test are in train" in task.notices()
    assert task.splits["test"][0].id == 1_000_000_000
    assert task.source_of(1_000_000_001) == f"{test}, row 1"


def test_the_fingerprint_is_of_the_content(tokenizer, tmp_path):
    same = [made(tokenizer, tmp_path).fingerprint for _ in range(2)]
    changed = made(tokenizer, tmp_path, [*ROWS[:-1], ROWS[-1] | {"answer": "7"}]).fingerprint
    assert same[0] == same[1] != changed


@pytest.mark.parametrize("suffix", ["parquet", "json", "jsonl"])
def test_files_of_all_forms_hold_the_same_rows(tmp_path, suffix):
    file = tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(ROWS), file)
    else:
        text = json.dumps(ROWS) if suffix == "json" else "\n".join(map(json.dumps, ROWS))
        file.write_text(text)
    rows = from_file(file)
    assert [i.answer for i in items_of(rows, reader(rows), "file").values()] == [
        row["answer"] for row in ROWS
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "holds no question"),
        ([{"answer": "1"}], "row 0: it has no field 'question'"),
        ([{"question": "a?"}], "row 0: it has no field 'answer'"),
        ([*ROWS[:2], {"question": " ", "answer": "1"}], "row 2: it has no question"),
        ([[1]], "row 0: it is no mapping"),
        ([{"question": "a?", "answer": "x\n#### 1"}, {"question": "b?", "answer": "2"}],
         "row 1: its solution has no number"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_read_is_named(tokenizer, tmp_path, rows, said):
    with pytest.raises(BadInput, match=said) as caught:
        _ = made(tokenizer, tmp_path, rows).splits
    assert "\n" not in str(caught.value)


def test_what_is_not_there_is_a_sentence(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    plain = copy.deepcopy(word_tokenizer())
    plain.chat_template = None
    plain.save_pretrained(tmp_path / "plain")
    bare = {"instruction": "Think."}
    for said, make in {
        "did you mean 'gsm8k'": lambda: MathProblems(tokenizer=tokenizer, train=["gsm9k"], **bare),
        "there is no such folder": lambda: MathProblems(tokenizer="/nowhere", **bare),
        "=data/none: there is no such folder": lambda: MathProblems(tokenizer="data/none", **bare),
        "no chat template": lambda: MathProblems(tokenizer=str(tmp_path / "plain"), **bare),
        "connection to the hub": lambda: MathProblems(tokenizer="no-one/nothing", **bare),
        "no token '<end>'": lambda: MathProblems(tokenizer=tokenizer, stop=["<end>"], **bare),
        "There is no file": lambda: made(tokenizer, tmp_path, test_file="/no.jsonl").splits,
        "have more than task.max_prompt=3": lambda: made(tokenizer, tmp_path, max_prompt=3).splits,
        "gsm8k.*(hub|not installed)": lambda: (
            MathProblems(tokenizer=tokenizer, train=["gsm8k"], **bare).splits
        ),
    }.items():
        with pytest.raises(BadInput, match=said) as caught:
            make()
        assert "\n" not in str(caught.value)


SHARED = {
    "gsm8k": ("gsm8k/train.jsonl", 7_473),
    "gsm8k_platinum": ("gsm8k_platinum/gsm8k-platinum.jsonl", 1_209),
    "math_levels_3_to_5": ("math_lvl3to5/train.jsonl", None),
    "math500": ("math500/test.jsonl", 500),
    "aime25": ("aime25/test.jsonl", 30),
}


@pytest.mark.parametrize("name", SHARED)
def test_the_rows_of_the_real_data_sets_are_read_and_can_be_judged(name):
    file, count = SHARED[name]
    rows = shared_rows(file)
    items = items_of(rows, DATA_SETS[name].read, name)
    assert len(items) == (count or len(rows))
    assert reader(rows) is DATA_SETS[name].read
    for item in items.values():
        check_gold(item.answer)


def test_gsm8ks_answers_are_numbers_without_commas():
    items = items_of(shared_rows("gsm8k/train.jsonl"), DATA_SETS["gsm8k"].read, "gsm8k")
    assert all(item.answer.lstrip("-").replace(".", "").isdigit() for item in items.values())
    assert items[0].answer == "72"
