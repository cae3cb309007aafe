"""A data set in; prompts with a persistent id and the answer that a verifier needs, out."""

from typing import Any

from waterline.tasks.task import LazyPrompts, Prompt, Task, Tokenizer, require_whole_batches

__all__ = ["LazyPrompts", "MazeTask", "Prompt", "Task", "Tokenizer", "require_whole_batches"]


def __getattr__(name: str) -> Any:
    # Verifiers need a task's rules alone, without what checks its settings.
    if name == "MazeTask":
        from waterline.tasks.maze import MazeTask

        return MazeTask
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
