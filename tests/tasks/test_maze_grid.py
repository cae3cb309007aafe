import random
from itertools import combinations

import pytest

from shared_data import shared_rows
from waterline.tasks.maze import Grid, all_mazes, count_mazes, judge_walk, prim_maze, shortest_path
from waterline.tasks.maze.grid import GOAL, PATH, START, WALL

STEPS = {"UP": (-1, 0), "DOWN": (1, 0), "LEFT": (0, -1), "RIGHT": (0, 1)}


def open_cells(grid: Grid) -> set[tuple[int, int]]:
    return {divmod(i, grid.size) for i, cell in enumerate(grid.cells) if cell != WALL}


def simple_paths(grid: Grid) -> list[list[str]]:
    """Every simple path from START to GOAL, by trying all of them."""
    free, goal = open_cells(grid), divmod(grid.goal, grid.size)
    found = []

    def go(cell: tuple[int, int], visited: frozenset[tuple[int, int]], moves: list[str]) -> None:
        if cell == goal:
            found.append(moves)
            return
        for move, (dr, dc) in STEPS.items():
            there = (cell[0] + dr, cell[1] + dc)
            if there in free and there not in visited:
                go(there, visited | {there}, [*moves, move])

    start = divmod(grid.start, grid.size)
    go(start, frozenset([start]), [])
    return found


@pytest.mark.parametrize("size", [5, 7, 9, 13, 17])
def test_prim_gives_a_spanning_tree_with_one_simple_path(size: int) -> None:
    rng = random.Random(size)
    for _ in range(20):
        grid = prim_maze(size, rng)
        free = open_cells(grid)
        m = (size - 1) // 2
        edges = sum((r + dr, c + dc) in free for r, c in free for dr, dc in ((1, 0), (0, 1)))
        assert len(free) == 2 * m * m - 1  # m² rooms and m² − 1 passages
        assert edges == len(free) - 1
        assert all((r, c) in free for r in range(1, size, 2) for c in range(1, size, 2))
        assert all(0 < r < size - 1 and 0 < c < size - 1 for r, c in free)
        assert grid.cells[size + 1] == START
        assert grid.cells[(size - 2) * size + size - 2] == GOAL
        assert simple_paths(grid) == [list(shortest_path(grid))]


def test_prim_is_a_function_of_its_stream() -> None:
    draws = [[prim_maze(9, rng) for _ in range(5)] for rng in (random.Random(3), random.Random(3))]
    assert draws[0] == draws[1]
    assert len({grid.cells for grid in draws[0]}) == 5


def test_prim_follows_its_distribution_on_the_smallest_maze() -> None:
    # From (1, 1) both neighbours are on the frontier; the third room joins the tree from the room
    # opened first, unless the last room is picked before it: paths of exact probability.
    rng = random.Random(0)
    counts: dict[bytes, int] = {}
    for _ in range(8_000):
        cells = prim_maze(5, rng).cells
        counts[cells] = counts.get(cells, 0) + 1
    # First pick A or B (1/2); then of {other, last}: other first (1/2), the last then joins A or B
    # (1/2 each); or last first, joining the opened one, and other then joins start or last (1/2).
    shapes = sorted(counts.values())
    assert [round(count / 1_000) for count in shapes] == [1, 1, 3, 3]


@pytest.mark.parametrize("size", [4, 3, 1, 0, -7, 16])
def test_impossible_sizes_are_one_sentence(size: int) -> None:
    with pytest.raises(ValueError, match=rf"odd size of at least 5.*size is {size}"):
        prim_maze(size, random.Random(0))
    with pytest.raises(ValueError, match="odd size"):
        list(all_mazes(size))


def brute_force_trees(m: int) -> int:
    rooms = [(r, c) for r in range(m) for c in range(m)]
    edges = [(a, b) for a, b in combinations(rooms, 2) if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
    trees = 0
    for chosen in combinations(edges, m * m - 1):
        parent = {room: room for room in rooms}

        def root(room: tuple[int, int], parent: dict[tuple[int, int], tuple[int, int]] = parent):
            while parent[room] != room:
                room = parent[room]
            return room

        for a, b in chosen:
            parent[root(a)] = root(b)
        trees += len({root(room) for room in rooms}) == 1
    return trees


def test_counts_by_kirchhoff() -> None:
    assert count_mazes(5) == brute_force_trees(2) == 4
    assert count_mazes(7) == brute_force_trees(3) == 192
    assert count_mazes(9) == 100_352
    assert count_mazes(11) == 557_568_000
    assert count_mazes(13) == 32_565_539_635_200
    assert count_mazes(17) == pytest.approx(126_231_322_912_498_539_682_594_816, rel=1e-12)


@pytest.mark.parametrize(("size", "count"), [(5, 4), (7, 192)])
def test_all_mazes_are_all_and_each_once(size: int, count: int) -> None:
    mazes = list(all_mazes(size))
    assert len(mazes) == len({grid.cells for grid in mazes}) == count
    for grid in mazes:
        assert simple_paths(grid) == [list(shortest_path(grid))]
    rng = random.Random(1)
    drawn = {prim_maze(size, rng).cells for _ in range(6_000)}
    assert drawn <= {grid.cells for grid in mazes}
    assert len(drawn) > 0.9 * count  # the rarest are waited for in vain


@pytest.mark.slow
def test_all_mazes_of_size_nine() -> None:
    cells = [grid.cells for grid in all_mazes(9)]
    assert len(cells) == len(set(cells)) == 100_352


def test_text_and_back() -> None:
    grid = prim_maze(7, random.Random(2))
    text = grid.prompt_text()
    assert text.startswith("<bos> GRID_START WALL")
    assert text.endswith("WALL NEWLINE GRID_END PATH_START")
    assert len(text.split()) == len(grid.prompt_tokens()) == 2 + 7 * 8 + 2
    assert Grid.from_sequence(text) == grid


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        ("WALL WALL", "no GRID_START"),
        ("GRID_START GRID_END", "not square"),
        ("GRID_START START GOAL NEWLINE PATH PATH GRID_END", "not square"),
        ("GRID_START START GOAL NEWLINE PATH NEWLINE PATH GRID_END", "not square"),
        ("GRID_START START GOAL NEWLINE PATH UP NEWLINE GRID_END", "other cells"),
        ("GRID_START START GOAL NEWLINE PATH START NEWLINE GRID_END", "one START"),
        ("GRID_START START WALL NEWLINE PATH PATH NEWLINE GRID_END", "GOAL"),
    ],
)
def test_malformed_mazes_are_one_sentence(sequence: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Grid.from_sequence(sequence)


def test_no_way_to_the_goal_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot be reached"):
        shortest_path(Grid(3, bytes([START, WALL, PATH, WALL, WALL, PATH, PATH, PATH, GOAL])))


def test_shortest_path_does_not_wrap_around_rows() -> None:
    # An open right border beside the next row's open left border.
    cells = [START, WALL, PATH, PATH, WALL, GOAL, PATH, PATH, PATH]
    assert shortest_path(Grid(3, bytes(cells))) == ("DOWN", "DOWN", "RIGHT", "RIGHT", "UP")


def test_the_original_mazes() -> None:
    rows = shared_rows("maze/maze_17x17.jsonl")
    assert len(rows) == 16
    for row in rows:
        grid = Grid.from_sequence(row["sequence"])
        moves = shortest_path(grid)
        assert grid.size == 17
        assert " ".join((*moves, "DONE <eos>")) == row["answer"]
        assert len(moves) == row["optimal_path_length"]
        assert grid.prompt_text() == row["question"]
        assert f"{row['question']} {row['answer']}" == row["sequence"]
        assert len(grid.prompt_tokens()) == 310
        assert judge_walk(row["answer"], row["sequence"]) == "correct"
