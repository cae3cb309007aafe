import random
import time

import pytest

from shared_data import shared_rows
from waterline.rewards import verify_maze
from waterline.tasks import MazeTask
from waterline.tasks.maze import prim_maze


def test_true_only_for_a_walk_to_the_goal() -> None:
    task = MazeTask(9, sft=0, train=8, dev=0, test=0)
    for prompt in task.splits["train"]:
        right = prompt.answer[len(prompt.text) :]
        for sequence in (prompt.answer, prompt.text):
            assert verify_maze(right, sequence) is True
            assert verify_maze(right.replace(" DONE", ""), sequence) is False
            assert verify_maze("PATH" + right, sequence) is False
            assert verify_maze("DONE", sequence) is False


def test_the_original_answers() -> None:
    for row in shared_rows("maze/maze_17x17.jsonl"):
        assert verify_maze(row["answer"], row["sequence"])
        assert verify_maze(row["answer"].removesuffix(" <eos>"), row["question"])
        assert not verify_maze(row["answer"].removesuffix(" DONE <eos>"), row["sequence"])


def test_thousands_a_second() -> None:
    rng = random.Random(0)
    sequences = [prim_maze(17, rng).prompt_text() for _ in range(50)]
    walk = " ".join(["RIGHT", "DOWN"] * 20) + " DONE"
    start = time.process_time()
    for _ in range(100):
        for sequence in sequences:
            verify_maze(walk, sequence)
    assert 5_000 / (time.process_time() - start) > 5_000


def test_no_maze_is_an_error() -> None:
    with pytest.raises(ValueError, match="no GRID_START"):
        verify_maze("DONE", "")
