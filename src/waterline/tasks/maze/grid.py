"""The 32 words of the maze language, and a maze as cells and as text."""

from dataclasses import dataclass

# The ids are those of the maze experiments of MaxRL and SERA: their checkpoints can be read.
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
VOCABULARY = (
    *SPECIAL,
    *("GRID_START", "GRID_END", "PATH_START", "DONE", "PATH", "WALL", "GOAL", "START", "NEWLINE"),
    *("UP", "DOWN", "LEFT", "RIGHT", "\n"),
    *(f"RESERVED_{i}" for i in range(14)),
)
TOKEN_IDS = {word: i for i, word in enumerate(VOCABULARY)}

PAD, BOS, EOS, UNK = range(4)
GRID_START, GRID_END, PATH_START, DONE, PATH, WALL, GOAL, START, NEWLINE = range(4, 13)

MOVES = ("UP", "DOWN", "LEFT", "RIGHT")
CELLS = (PATH, WALL, GOAL, START)


@dataclass(frozen=True, slots=True)
class Grid:
    """A maze of ``size`` × ``size`` cells, walls included.

    ``cells`` has the token ids (PATH, WALL, GOAL, START) row by row; cell (row, column) is at
    ``row * size + column``.
    """

    size: int
    cells: bytes

    @property
    def start(self) -> int:
        """The place of START in ``cells``."""
        return self.cells.index(START)

    @property
    def goal(self) -> int:
        """The place of GOAL in ``cells``."""
        return self.cells.index(GOAL)

    def prompt_tokens(self) -> tuple[int, ...]:
        """``<bos> GRID_START``, the rows, each with a NEWLINE, ``GRID_END PATH_START``."""
        tokens = [BOS, GRID_START]
        for row in range(0, len(self.cells), self.size):
            tokens += self.cells[row : row + self.size]
            tokens.append(NEWLINE)
        return (*tokens, GRID_END, PATH_START)

    def prompt_text(self) -> str:
        """The words of ``prompt_tokens``, joined by spaces."""
        return " ".join(map(VOCABULARY.__getitem__, self.prompt_tokens()))

    @classmethod
    def from_sequence(cls, sequence: str) -> "Grid":
        """Read the grid between GRID_START and GRID_END of a space-joined sequence.

        Raises ValueError when there is no such part, when it is not a square of the four kinds of
        cell, or when it has not exactly one START and one GOAL.
        """

        def refused(what: str) -> ValueError:
            return ValueError(f"The maze {sequence[:40]!r}… {what}")

        words = sequence.split()
        try:
            first, last = words.index("GRID_START") + 1, words.index("GRID_END")
        except ValueError:
            raise refused("has no GRID_START … GRID_END; pass the maze's text.") from None
        ids = [TOKEN_IDS.get(word, -1) for word in words[first:last]]
        size = ids.index(NEWLINE) if NEWLINE in ids else 0
        rows = [ids[i : i + size + 1] for i in range(0, len(ids), size + 1)]
        cells = [cell for row in rows for cell in row[:-1]]
        square = all(len(row) == size + 1 and row[-1] == NEWLINE for row in rows)
        if size == 0 or len(rows) != size or not square:
            raise refused("is not square; give it rows of as many cells, each with a NEWLINE.")
        if not set(cells) <= set(CELLS) or cells.count(START) != 1 or cells.count(GOAL) != 1:
            raise refused("has other cells than PATH, WALL, one START and one GOAL; correct it.")
        return cls(size, bytes(cells))
