import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_data import shared_data
from waterline.tasks import MazeTask, Prompt, require_whole_batches
from waterline.tasks.maze import Grid, count_mazes, shortest_path

ORDER = ("test", "dev", "train", "sft")


def grids(task: MazeTask, *splits: str) -> list[bytes]:
    return [Grid.from_sequence(p.text).cells for s in splits for p in task.splits[s]]


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 48), min_size=4, max_size=4),
    size=st.sampled_from([7, 9, 11]),
    seed=st.integers(0, 3),
)
def test_splits_are_disjoint_and_without_duplicates(sizes: list[int], size: int, seed: int) -> None:
    task = MazeTask(size, **dict(zip(ORDER, sizes, strict=True)), seed=seed)
    assert [len(task.splits[split]) for split in ORDER] == sizes
    everything = grids(task, *ORDER)
    assert len(set(everything)) == len(everything) == sum(sizes)
    ids = [p.id for split in ORDER for p in task.splits[split]]
    assert len(set(ids)) == len(ids)
    assert all(0 <= i < 2**31 for i in ids)


@settings(max_examples=15, deadline=None)
@given(small=st.integers(0, 40), more=st.integers(0, 24), split=st.sampled_from(ORDER))
def test_a_larger_split_keeps_what_stands_before_it(small: int, more: int, split: str) -> None:
    sizes = dict.fromkeys(ORDER, 24)
    a = MazeTask(7, **{**sizes, split: small})
    b = MazeTask(7, **{**sizes, split: small + more})
    for name in ORDER[: ORDER.index(split)]:
        assert a.splits[name] == b.splits[name]
    assert b.splits[split][:small] == a.splits[split]


def test_all_mazes_that_exist_can_be_asked_for() -> None:
    task = MazeTask(7, sft=100, train=64, dev=8, test=20)
    assert len(set(grids(task, *ORDER))) == count_mazes(7) == 192
    assert len(set(grids(MazeTask(5, sft=1, train=1, dev=1, test=1), *ORDER))) == 4


@pytest.mark.slow
def test_all_mazes_of_size_nine_can_be_asked_for() -> None:
    task = MazeTask(9, sft=100_000, train=32, dev=120, test=200)
    assert len(set(grids(task, *ORDER))) == 100_352


def test_more_than_exist_is_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"193 distinct mazes.*only 192 exist of size 7×7"):
        MazeTask(7, sft=100, train=64, dev=9, test=20)
    start = time.monotonic()
    with pytest.raises(ValueError, match=r"only 100352 exist"):
        MazeTask(9, sft=100_000, train=1_000, dev=0, test=0)
    assert time.monotonic() - start < 1


@pytest.mark.parametrize("size", [3, 8, 16])
def test_impossible_sizes_are_one_sentence(size: int) -> None:
    with pytest.raises(ValueError, match=f"size is {size}"):
        MazeTask(size, sft=0, train=1, dev=0, test=0)


def test_other_bad_settings() -> None:
    with pytest.raises(ValueError, match="split dev has -1"):
        MazeTask(7, sft=0, train=1, dev=-1, test=0)
    with pytest.raises(ValueError, match="max_response is 0"):
        MazeTask(7, sft=0, train=1, dev=0, test=0, max_response=0)


def test_the_same_settings_give_the_same_task() -> None:
    a, b, c = (MazeTask(9, sft=5, train=5, dev=5, test=5, seed=seed) for seed in (1, 1, 2))
    assert a.splits == b.splits
    assert a.splits != c.splits


def test_a_prompt_holds_what_sampling_and_verifying_need() -> None:
    task = MazeTask(17, sft=1, train=3, dev=1, test=1)
    assert set(task.splits) == {"sft", "train", "dev", "test"}
    assert task.stop_tokens == (7, 2)
    assert task.max_response == 180
    assert task.max_prompt == 310
    prompt = task.splits["train"][0]
    assert isinstance(prompt, Prompt)
    assert len(prompt.tokens) == 310
    assert prompt.answer.startswith(prompt.text + " ")
    target = task.target(prompt)
    assert target[-2:] == (7, 2)
    moves = shortest_path(Grid.from_sequence(prompt.answer))
    assert task.tokenizer.decode(target) == " ".join((*moves, "DONE <eos>"))


def test_verdicts_stand_beside_their_responses() -> None:
    task = MazeTask(9, sft=0, train=3, dev=0, test=0)
    a, b, c = task.splits["train"]
    right = task.tokenizer.decode(task.target(b), skip_special_tokens=True)
    responses = ["DONE", right, "UP"]
    assert task.verify([a, b, c], responses) == ["wrong", "correct", "unparseable"]
    with pytest.raises(ValueError, match="zip"):
        task.verify([a, b], responses)


def test_training_sets_are_whole_batches() -> None:
    require_whole_batches(128, 32)
    with pytest.raises(ValueError, match=r"130 prompts.*set its size to 128 or 160"):
        require_whole_batches(130, 32)
    with pytest.raises(ValueError, match=r"16 prompts.*set its size to 32 or 64"):
        require_whole_batches(16, 32)
    with pytest.raises(ValueError, match="at least 1"):
        require_whole_batches(16, 0)


def test_thirty_thousand_mazes_take_seconds() -> None:
    start = time.process_time()
    task = MazeTask(9, sft=29_500, train=128, dev=128, test=244)
    assert time.process_time() - start < 20  # 2.6 s of one core when it was written
    assert sum(map(len, task.splits.values())) == 30_000


def write_rows(path, tasks: list[MazeTask]) -> None:
    prompts = [p for task in tasks for p in task.splits["train"]]
    path.write_text("".join(json.dumps({"sequence": p.answer}) + "\n" for p in prompts))


def test_splits_from_one_file(tmp_path) -> None:
    made = MazeTask(9, sft=0, train=40, dev=0, test=0)
    path = tmp_path / "mazes.jsonl"
    write_rows(path, [made, made])  # each maze twice
    task = MazeTask(9, sft=10, train=16, dev=6, test=8, path=path)
    everything = grids(task, *ORDER)
    assert len(set(everything)) == len(everything) == 40
    assert set(everything) == set(grids(made, "train"))
    for prompt in task.splits["sft"]:
        assert task.tokenizer.decode(prompt.tokens + task.target(prompt)) == prompt.answer
    again = MazeTask(9, sft=0, train=4, dev=6, test=8, path=path)
    assert again.splits["test"] == task.splits["test"]
    assert again.splits["dev"] == task.splits["dev"]
    with pytest.raises(ValueError, match=r"sft asks for 11 mazes.*only 10"):
        MazeTask(9, sft=11, train=16, dev=6, test=8, path=path)


def test_splits_from_a_folder_of_parquet_files(tmp_path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    import random

    made = MazeTask(7, sft=0, train=60, dev=0, test=12)
    sequences = {s: [p.answer for p in made.splits[s]] for s in ("train", "test")}
    rows = [{"ground_truth": s, "style": "rule"} for s in sequences["train"]]
    pq.write_table(pa.table({"reward_model": rows}), tmp_path / "train.parquet")
    pq.write_table(pa.table({"sequence": sequences["test"]}), tmp_path / "test.parquet")
    task = MazeTask(7, sft=0, train=32, dev=0, test=12, seed=42, path=tmp_path)
    assert [p.answer for p in task.splits["test"]] == sequences["test"]
    sample = sorted(random.Random(42).sample(range(60), 32))
    assert [p.answer for p in task.splits["train"]] == [sequences["train"][i] for i in sample]
    with pytest.raises(ValueError, match=r"neither dev\.parquet nor dev\.jsonl"):
        MazeTask(7, sft=0, train=1, dev=1, test=0, path=tmp_path)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda line: "{", r"Row 2 of .* is not JSON"),
        (lambda line: "[1]", r"Row 2 of .* has no text under 'sequence'"),
        (lambda line: '{"sequence": 3}', r"Row 2 of .* has no text"),
        (lambda line: line.replace("GRID_END ", ""), r"Row 2 of .* malformed: .* no GRID_START"),
        (lambda line: line.replace("WALL WALL", "WALL", 1), r"Row 2 of .* not square"),
        (lambda line: line.replace("GOAL", "WALL"), r"Row 2 of .* GOAL"),
        (lambda line: line.replace(" <eos>", ""), r"Row 2 of .* joined by single spaces"),
        (lambda line: line.replace("<bos> ", ""), r"Row 2 of .* joined by single spaces"),
        (lambda line: line.replace("PATH_START", "PATH_START UP"), r"do not lead to the goal"),
    ],
)
def test_malformed_rows_are_one_sentence(tmp_path, spoil, message: str) -> None:
    path = tmp_path / "mazes.jsonl"
    write_rows(path, [MazeTask(7, sft=0, train=3, dev=0, test=0)])
    lines = path.read_text().splitlines()
    lines[1] = spoil(lines[1])
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=message) as caught:
        MazeTask(7, sft=0, train=3, dev=0, test=0, path=path)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_mazes(tmp_path) -> None:
    with pytest.raises(ValueError, match="no mazes at"):
        MazeTask(7, sft=0, train=1, dev=0, test=0, path=tmp_path / "absent.jsonl")
    (tmp_path / "mazes.csv").write_text("sequence\n")
    with pytest.raises(ValueError, match=r"give a \.jsonl or \.parquet"):
        MazeTask(7, sft=0, train=1, dev=0, test=0, path=tmp_path / "mazes.csv")
    write_rows(tmp_path / "train.jsonl", [MazeTask(7, sft=0, train=3, dev=0, test=0)])
    with pytest.raises(ValueError, match="has a 7×7 maze, but the task's size is 9"):
        MazeTask(9, sft=0, train=3, dev=0, test=0, path=tmp_path)


def test_the_original_file() -> None:
    path = shared_data("maze/maze_17x17.jsonl")
    task = MazeTask(17, sft=4, train=4, dev=4, test=4, path=path)
    prompts = [p for split in task.splits.values() for p in split]
    assert {len(p.tokens) for p in prompts} == {310}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {p.answer for p in prompts} == {row["sequence"] for row in rows}
    answers = {row["sequence"]: row["answer"] for row in rows}
    assert task.verify(prompts, [answers[p.answer] for p in prompts]) == ["correct"] * 16
