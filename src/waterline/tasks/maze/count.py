"""How many mazes of a size exist."""

from functools import lru_cache


@lru_cache(maxsize=64)
def count_mazes(size: int) -> int:
    """The number of different mazes of an odd ``size`` ≥ 5, exactly.

    A maze is a spanning tree of the m × m grid of rooms, m = (size − 1)/2. By the matrix-tree
    theorem (Kirchhoff 1847) their number is any cofactor of the graph's Laplacian; the determinant
    is taken over the integers (Bareiss 1968). 5: 4, 7: 192, 9: 100,352, 11: 557,568,000.
    """
    m = (size - 1) // 2
    n = m * m - 1  # the last room's row and column are struck out
    matrix = [[0] * n for _ in range(n)]
    for room in range(n):
        row, column = divmod(room, m)
        for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            if 0 <= r < m and 0 <= c < m:
                matrix[room][room] += 1
                if r * m + c < n:
                    matrix[room][r * m + c] = -1
    # The Laplacian without one row and column is positive definite: no pivot is ever zero.
    previous = 1
    for k in range(n):
        pivot = matrix[k][k]
        for i in range(k + 1, n):
            factor = matrix[i][k]
            matrix[i] = [
                (pivot * x - factor * y) // previous
                for x, y in zip(matrix[i], matrix[k], strict=True)
            ]
        previous = pivot
    return previous
