import hashlib
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_data import shared_data
from waterline.rewards import verify_maze
from waterline.runs import BadInput
from waterline.tasks import MazeTask, Prompt, require_whole_batches
from waterline.tasks.maze import Grid, count_mazes, prim_maze, shortest_path

ORDER = ("test", "dev", "train", "sft")


def prompts(task: MazeTask, *splits: str) -> list[Prompt]:
    return [p for s in splits for p in task.splits[s]]


def grids(task: MazeTask, *splits: str) -> list[bytes]:
    return [Grid.from_sequence(p.text).cells for p in prompts(task, *splits)]


def digest(task: MazeTask, split: str) -> str:
    rows = [[p.id, p.text, list(p.tokens), p.answer] for p in task.splits[split]]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


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
        assert prompts(a, name) == prompts(b, name)
    assert b.splits[split][:small] == prompts(a, split)


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
    with pytest.raises(ValueError, match=f"size(=| is ){size}"):
        MazeTask(size, sft=0, train=1, dev=0, test=0)


def test_other_bad_settings() -> None:
    with pytest.raises(ValueError, match="dev=-1: must be a whole number from 0"):
        MazeTask(7, sft=0, train=1, dev=-1, test=0)
    for seed in (None, 1.5, "abc"):  # None would be chance that nothing records
        with pytest.raises(ValueError, match=r"seed=.*: must be a whole number"):
            MazeTask(7, sft=0, train=1, dev=0, test=0, seed=seed)
    with pytest.raises(ValueError, match="max_response=0: must be a whole number"):
        MazeTask(7, sft=0, train=1, dev=0, test=0, max_response=0)


def test_the_same_settings_give_the_same_task() -> None:
    a, b, c = (MazeTask(9, sft=5, train=5, dev=5, test=5, seed=seed) for seed in (1, 1, 2))
    assert prompts(a, *ORDER) == prompts(b, *ORDER) != prompts(c, *ORDER)


def test_a_prompt_holds_what_sampling_and_verifying_need() -> None:
    task = MazeTask(17, sft=1, train=3, dev=1, test=1)
    assert set(task.splits) == {"sft", "train", "dev", "test"}
    assert task.stop_tokens == (7, 2)
    assert task.max_response == 180
    assert task.has_likelihood is False
    prompt = task.splits["train"][0]
    assert isinstance(prompt, Prompt)
    assert len(prompt.tokens) == 310
    assert prompt.answer.startswith(prompt.text + " ")
    target = task.target(prompt)
    assert target[-2:] == (7, 2)
    moves = shortest_path(Grid.from_sequence(prompt.answer))
    assert task.tokenizer.decode(target) == " ".join((*moves, "DONE <eos>"))


# The first digits of each split's SHA-256, in the order in which mazes are given out. They were
# taken from a version that made all splits at once: the prompts of a finished run never change.
FROZEN = [
    (
        {"size": 7, "sft": 100, "train": 64, "dev": 8, "test": 20},  # all that exist
        ["b8031e39c3549a46", "a62bf46177248737", "7c0f5191320a8777", "9b40d1a98f531910"],
    ),
    (
        {"size": 9, "sft": 40, "train": 24, "dev": 8, "test": 12, "seed": 3},
        ["9c048640e2f7a4ff", "92ca92a7a0bf17af", "0c401710fd7296f1", "8e4dd0bdaeaf3f87"],
    ),
    (
        {"size": 17, "sft": 6, "train": 4, "dev": 3, "test": 5},
        ["35c61aad68ce4a2a", "35e65e0876c220d7", "8730a763f53d08e1", "10532af852ec5c8d"],
    ),
]
FROM_A_FILE = [
    "64406f15a1e87159",
    "c8f44892c1276807",
    "2e094b475d45a080",
    "c3c85b350589b3eb",
]


@pytest.mark.parametrize(("sizes", "digests"), FROZEN)
@pytest.mark.parametrize("reading", [ORDER, ORDER[::-1], ("train", "sft", "test", "dev")])
def test_the_mazes_never_change(sizes, digests: list[str], reading) -> None:
    task = MazeTask(**sizes)
    found = {split: digest(task, split) for split in reading}
    assert [found[split] for split in ORDER] == digests


def count_takings(task: MazeTask) -> list[str]:
    takings: list[str] = []
    take = task._take

    def counted(split, count, given):
        takings.append(split)
        return take(split, count, given)

    task._take = counted
    return takings


@pytest.mark.parametrize("from_a_file", [False, True])
def test_a_split_is_made_when_it_is_first_read(tmp_path, from_a_file: bool) -> None:
    path = None
    if from_a_file:
        path = tmp_path / "mazes.jsonl"
        write_rows(path, [MazeTask(7, sft=0, train=100, dev=0, test=0)])
    task = MazeTask(7, sft=60, train=16, dev=8, test=4, path=path)
    takings = count_takings(task)
    # Names and sizes are known without a maze.
    assert set(task.splits) == {"sft", "train", "dev", "test"}
    assert "sft" in task.splits
    assert task.splits.get("valid") is None
    assert {split: len(found) for split, found in task.splits.items()} == {
        "sft": 60, "train": 16, "dev": 8, "test": 4,
    }  # fmt: skip
    assert all(task.splits.values())
    assert not MazeTask(7, sft=0, train=1, dev=0, test=0).splits["sft"]
    assert takings == []
    assert task.splits["dev"][0] in task.splits["dev"]
    assert takings == ["test", "dev"]
    assert len(list(task.splits["train"])) == len(task.splits["train"][:]) == 16
    assert takings == ["test", "dev", "train"]
    assert isinstance(task.splits["sft"][-1], Prompt)
    assert task.splits["sft"][0].id == 1_500_000_000
    assert takings == ["test", "dev", "train", "sft"]


def test_training_mazes_are_drawn_without_the_supervised_ones(monkeypatch) -> None:
    drawn = []

    def counted(size, rng):
        drawn.append(size)
        return prim_maze(size, rng)

    monkeypatch.setattr("waterline.tasks.maze.generate.prim_maze", counted)
    task = MazeTask(17, sft=25_600, train=32, dev=8, test=8)
    assert not drawn
    assert len(prompts(task, "train")) == 32
    assert len(drawn) == 48


def test_a_reading_that_was_broken_off_can_be_repeated(monkeypatch) -> None:
    sizes = {"size": 9, "sft": 40, "train": 24, "dev": 8, "test": 12, "seed": 3}
    task, calls = MazeTask(**sizes), 0

    def interrupted(size, rng):
        nonlocal calls
        calls += 1
        if calls == 30:
            raise KeyboardInterrupt
        return prim_maze(size, rng)

    monkeypatch.setattr("waterline.tasks.maze.generate.prim_maze", interrupted)
    with pytest.raises(KeyboardInterrupt):
        task.splits["train"][0]
    assert [digest(task, split) for split in ORDER] == FROZEN[1][1]


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
    assert len(task.splits["sft"][:]) == 29_500
    assert time.process_time() - start < 20  # 2.6 s of one core when it was written
    assert sum(map(len, task.splits.values())) == 30_000


def write_rows(path, tasks: list[MazeTask]) -> None:
    rows = [p for task in tasks for p in task.splits["train"]]
    path.write_text("".join(json.dumps({"sequence": p.answer}) + "\n" for p in rows))


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
    assert [digest(task, split) for split in ORDER] == FROM_A_FILE
    again = MazeTask(9, sft=0, train=4, dev=6, test=8, path=path)
    assert prompts(again, "test", "dev") == prompts(task, "test", "dev")
    more = MazeTask(9, sft=11, train=16, dev=6, test=8, path=path)
    for _ in range(2):  # also when it is tried again
        with pytest.raises(ValueError, match=r"sft asks for 11 mazes.*only 10"):
            more.splits["sft"][0]
    assert prompts(more, "train") == prompts(task, "train")
    with pytest.raises(ValueError, match=r"sft asks for 51 mazes.*only 50"):
        MazeTask(9, sft=51, train=16, dev=6, test=8, path=path)


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
        MazeTask(7, sft=0, train=3, dev=0, test=0, path=path).splits["train"][0]
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_mazes(tmp_path) -> None:
    with pytest.raises(ValueError, match="no mazes at"):
        MazeTask(7, sft=0, train=1, dev=0, test=0, path=tmp_path / "absent.jsonl")
    (tmp_path / "mazes.csv").write_text("sequence\n")
    with pytest.raises(ValueError, match=r"give a \.jsonl or \.parquet"):
        MazeTask(7, sft=0, train=1, dev=0, test=0, path=tmp_path / "mazes.csv")
    write_rows(tmp_path / "train.jsonl", [MazeTask(7, sft=0, train=3, dev=0, test=0)])
    with pytest.raises(ValueError, match="has a 7×7 maze, but the task's size is 9"):
        MazeTask(9, sft=0, train=3, dev=0, test=0, path=tmp_path).splits["train"][0]


def test_broken_and_ambiguous_files_are_one_sentence(tmp_path) -> None:
    (tmp_path / "train.parquet").write_text("hello")
    with pytest.raises(ValueError, match=r"train\.parquet is no Parquet file"):
        MazeTask(7, sft=0, train=1, dev=0, test=0, path=tmp_path / "train.parquet")
    write_rows(tmp_path / "train.jsonl", [MazeTask(7, sft=0, train=3, dev=0, test=0)])
    with pytest.raises(ValueError, match=r"has both train\.parquet and train\.jsonl; remove one"):
        MazeTask(7, sft=0, train=1, dev=0, test=0, path=tmp_path)


def test_a_maze_in_several_rows_or_files_is_in_one_split(tmp_path) -> None:
    few = MazeTask(7, sft=0, train=20, dev=0, test=0)
    for split in ("test", "dev", "train"):  # the same rows, and each of them four times
        write_rows(tmp_path / f"{split}.jsonl", [few] * 4)
    sizes = {"sft": 0, "train": 8, "dev": 6, "test": 6}
    task = MazeTask(7, **sizes, path=tmp_path)
    everything = grids(task, "train", "dev", "test")
    assert len(set(everything)) == len(everything) == 20
    more = MazeTask(7, **sizes | {"train": 9}, path=tmp_path)
    with pytest.raises(BadInput, match="train asks for 9 mazes"):
        more.splits["train"][0]
    assert len(more.splits["dev"][:]) == 6


def test_other_files_have_another_fingerprint(tmp_path) -> None:
    few = MazeTask(7, sft=0, train=20, dev=0, test=0)
    assert few.fingerprint is None
    names = ("a.jsonl", "b.jsonl", "c.jsonl")
    for name in names:
        write_rows(tmp_path / name, [few])
    lines = (tmp_path / "c.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "c.jsonl").write_text("".join(reversed(lines)))
    a, b, c = (
        MazeTask(7, sft=0, train=5, dev=5, test=0, path=tmp_path / name).fingerprint
        for name in names
    )
    assert a == b != c


def test_the_original_file() -> None:
    path = shared_data("maze/maze_17x17.jsonl")
    task = MazeTask(17, sft=4, train=4, dev=4, test=4, path=path)
    everything = prompts(task, *ORDER)
    assert {len(p.tokens) for p in everything} == {310}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {p.answer for p in everything} == {row["sequence"] for row in rows}
    answers = {row["sequence"]: row["answer"] for row in rows}
    assert all(verify_maze(answers[p.answer], p.answer) for p in everything)
