"""The demonstration of a maze: its shortest path."""

from waterline.tasks.maze.grid import Grid
from waterline.tasks.maze.vocabulary import MOVES, WALL


def shortest_path(grid: Grid) -> tuple[str, ...]:
    """The moves of a shortest path from START to GOAL.

    Breadth-first, neighbours in the order UP, DOWN, LEFT, RIGHT; ties between paths of equal length
    go to the first one found. Raises ValueError when the goal cannot be reached.
    """
    size, cells, start, goal = grid.size, grid.cells, grid.start, grid.goal
    steps = (-size, size, -1, 1)
    came_by = {start: -1}
    queue = [start]
    for cell in queue:
        if cell == goal:
            break
        for move, step in enumerate(steps):
            there = cell + step
            if not 0 <= there < len(cells) or (move > 1 and there // size != cell // size):
                continue
            if cells[there] != WALL and there not in came_by:
                came_by[there] = move
                queue.append(there)
    else:
        raise ValueError("The maze's goal cannot be reached from its start; correct the maze.")
    moves = []
    while cell != start:
        moves.append(MOVES[came_by[cell]])
        cell -= steps[came_by[cell]]
    return tuple(reversed(moves))
