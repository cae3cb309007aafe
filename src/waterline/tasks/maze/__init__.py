"""Mazes: the generator, the language, the demonstrations and the verdict on a walk."""

from waterline.tasks.maze.all_mazes import all_mazes
from waterline.tasks.maze.count import count_mazes
from waterline.tasks.maze.draw import distinct_mazes
from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.prim import prim_maze
from waterline.tasks.maze.shortest_path import shortest_path
from waterline.tasks.maze.task import MazeTask
from waterline.tasks.maze.tokenizer import MazeTokenizer
from waterline.tasks.maze.walk import judge_walk

__all__ = [
    "Grid",
    "MazeTask",
    "MazeTokenizer",
    "all_mazes",
    "count_mazes",
    "distinct_mazes",
    "judge_walk",
    "prim_maze",
    "shortest_path",
]
