"""A data set in; prompts with a persistent id and the answer that a verifier needs, out."""

from waterline.tasks.maze import MazeTask
from waterline.tasks.task import LazyPrompts, Prompt, Task, Tokenizer, require_whole_batches

__all__ = ["LazyPrompts", "MazeTask", "Prompt", "Task", "Tokenizer", "require_whole_batches"]
