"""Mazes: the generator, the language, the demonstrations and the verdict on a walk."""

from typing import Any

from waterline.tasks.maze.all_mazes import all_mazes, count_mazes
from waterline.tasks.maze.generate import prim_maze
from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.tokenizer import MazeTokenizer
from waterline.tasks.maze.walk import judge_walk, shortest_path

__all__ = [
    "Grid",
    "MazeTask",
    "MazeTokenizer",
    "all_mazes",
    "count_mazes",
    "judge_walk",
    "prim_maze",
    "shortest_path",
]


def __getattr__(name: str) -> Any:
    if name == "MazeTask":
        from waterline.tasks.maze.task import MazeTask

        return MazeTask
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
