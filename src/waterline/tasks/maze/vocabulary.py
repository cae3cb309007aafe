"""The 32 words of the maze language, in the order of their ids.

The ids are those of the maze experiments of MaxRL and SERA, so that their checkpoints can be read.
"""

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
UP, DOWN, LEFT, RIGHT = range(13, 17)

MOVES = ("UP", "DOWN", "LEFT", "RIGHT")
CELLS = (PATH, WALL, GOAL, START)
