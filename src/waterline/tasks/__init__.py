"""A data set in; prompts with a persistent id, and what the verifier needs, out."""

from waterline.tasks.batches import require_whole_batches
from waterline.tasks.maze import MazeTask
from waterline.tasks.prompt import Prompt
from waterline.tasks.task import Task
from waterline.tasks.tokenizer import Tokenizer

__all__ = ["MazeTask", "Prompt", "Task", "Tokenizer", "require_whole_batches"]
