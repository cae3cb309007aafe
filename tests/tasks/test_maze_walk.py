import random

import pytest

from waterline.tasks.maze import judge_walk, prim_maze, shortest_path

# S . #      The grid has open borders, so that a walk can leave it.
# # . .
# # # G
OPEN = (
    "GRID_START START PATH WALL NEWLINE WALL PATH PATH NEWLINE WALL WALL GOAL NEWLINE GRID_END"
    " PATH_START"
)
PAPER = " ".join(
    ["<bos> GRID_START"]
    + [
        " ".join({"#": "WALL", ".": "PATH", "S": "START", "G": "GOAL"}[c] for c in row) + " NEWLINE"
        for row in ("#######", "#S#...#", "#.#.###", "#.....#", "#.###.#", "#.#..G#", "#######")
    ]
    + ["GRID_END PATH_START"]
)


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        ("RIGHT DOWN RIGHT DOWN DONE <eos>", "correct"),
        ("RIGHT DOWN RIGHT DOWN DONE", "correct"),
        ("  RIGHT\nDOWN  RIGHT DOWN\tDONE ", "correct"),
        # reaching the goal at any time
        ("RIGHT DOWN RIGHT DOWN DOWN DOWN DONE", "correct"),
        ("RIGHT DOWN RIGHT DOWN UP LEFT LEFT LEFT DONE", "correct"),
        # turning back is allowed
        ("RIGHT LEFT RIGHT DOWN UP DOWN RIGHT LEFT RIGHT DOWN DONE", "correct"),
        # text after the first DONE is ignored
        ("RIGHT DOWN RIGHT DOWN DONE PATH nonsense UP DONE", "correct"),
        ("RIGHT DONE DOWN RIGHT DOWN DONE", "wrong"),
        # special tokens vanish
        ("<bos> RIGHT <pad> DOWN <unk> RIGHT <eos> DOWN DONE <eos> <pad>", "correct"),
        # walls and the outside end the walk
        ("DOWN RIGHT RIGHT DOWN DONE", "wrong"),
        ("RIGHT RIGHT DOWN DOWN DONE", "wrong"),
        ("LEFT RIGHT RIGHT DOWN RIGHT DOWN DONE", "wrong"),
        ("UP DOWN RIGHT DOWN RIGHT DOWN DONE", "wrong"),
        ("RIGHT DOWN RIGHT RIGHT LEFT DOWN DONE", "wrong"),
        # ending elsewhere
        ("RIGHT DOWN RIGHT DONE", "wrong"),
        ("DONE", "wrong"),
        ("<eos> DONE", "wrong"),
        # no DONE, or other words before it
        ("RIGHT DOWN RIGHT DOWN", "unparseable"),
        ("RIGHT DOWN RIGHT DOWN <eos>", "unparseable"),
        ("", "unparseable"),
        ("RIGHT DOWN PATH RIGHT DOWN DONE", "unparseable"),
        ("RIGHT DOWN RIGHT DOWN PATH DONE", "unparseable"),
        ("right down right down DONE", "unparseable"),
        ("RIGHT DOWN RIGHT DOWN done", "unparseable"),
    ],
)
def test_rules_of_the_walk(response: str, verdict: str) -> None:
    assert judge_walk(response, OPEN) == verdict


def test_leaving_through_the_last_row_and_column_does_not_wrap() -> None:
    # G S      RIGHT from S would be G, if rows were not walled off; and so would UP from the top.
    # . .
    grid = "GRID_START GOAL START NEWLINE PATH PATH NEWLINE GRID_END"
    assert judge_walk("RIGHT DONE", grid) == "wrong"
    assert judge_walk("DOWN DOWN DONE", grid) == "wrong"
    assert judge_walk("UP LEFT DONE", grid) == "wrong"
    assert judge_walk("DOWN LEFT LEFT RIGHT UP DONE", grid) == "wrong"
    assert judge_walk("DOWN LEFT UP DONE", grid) == "correct"


def test_the_example_of_the_paper() -> None:
    assert judge_walk("DOWN DOWN RIGHT RIGHT RIGHT RIGHT DOWN DOWN DONE <eos>", PAPER) == "correct"
    assert judge_walk("RIGHT RIGHT RIGHT RIGHT DOWN DOWN DOWN DOWN DONE <eos>", PAPER) == "wrong"


def test_a_sequence_without_a_maze_is_an_error() -> None:
    with pytest.raises(ValueError, match="no GRID_START"):
        judge_walk("DONE", "UP DOWN")


def test_random_walks_agree_with_a_plain_simulation() -> None:
    rng = random.Random(0)
    steps = {"UP": (-1, 0), "DOWN": (1, 0), "LEFT": (0, -1), "RIGHT": (0, 1)}
    verdicts = set()
    for _ in range(2_000):
        grid = prim_maze(5, rng)
        rows = [grid.cells[i : i + 5] for i in range(0, 25, 5)]
        walk = [rng.choice(list(steps)) for _ in range(rng.randrange(3))]
        walk = list(shortest_path(grid))[: rng.randrange(6)] + walk
        place, verdict = (1, 1), "wrong"
        for move in walk:
            place = (place[0] + steps[move][0], place[1] + steps[move][1])
            if place == (3, 3):
                verdict = "correct"
                break
            if rows[place[0]][place[1]] == 9:
                break
        verdicts.add(verdict)
        assert judge_walk(" ".join([*walk, "DONE"]), grid.prompt_text()) == verdict
    assert verdicts == {"correct", "wrong"}
