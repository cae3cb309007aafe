"""What the terminal shows while jobs run: a bar for each, a line as each ends."""

from __future__ import annotations

import re
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from waterline.launch.jobs import Command

_DONE_OF = re.compile(r"(?:step (\d+)/(\d+)|(\d+) of (\d+) (?:prompts|checkpoints))")


class JobWatch:
    """Follows ``jobs`` commands under a title, from the lines that they log.

    On a terminal each running job has a bar; elsewhere only the line of its end is printed.
    """

    def __init__(self, console: Console, title: str, jobs: int) -> None:
        self.console, self.title, self.jobs = console, title, jobs
        self.finished = 0
        self._bars: dict[Command, TaskID] = {}
        self._progress = Progress(
            TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(),
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self.console.print(f"\n[bold]{self.title}[/bold]")
        self._began = time.monotonic()
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def told(self, command: Command, line: str) -> None:
        """A line that a job has logged."""
        if not (match := _DONE_OF.search(line)):
            return
        done, of = (int(g) for g in match.groups() if g is not None)
        if command not in self._bars:
            self._bars[command] = self._progress.add_task(label(command), total=of)
        self._progress.update(self._bars[command], completed=done, total=of)

    def ended(self, command: Command, code: int, output: str) -> None:
        """A job's end; the end of its output when it failed."""
        self.finished += 1
        if command in self._bars:
            self._progress.remove_task(self._bars.pop(command))
        state = "done" if code == 0 else "FAILED"
        minutes = (time.monotonic() - self._began) / 60
        self.console.print(
            f"  {self.finished}/{self.jobs} {state} at {minutes:.1f} min: {label(command)}",
            highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip
        if code:
            self.console.print(output[-2000:], markup=False, highlight=False)


def label(command: Command) -> str:
    """The settings that tell a command from its neighbours, such as 'sera seqnorm seed=1'."""
    settings = dict(part.split("=", 1) for part in command[1:] if "=" in part)
    if settings.get("stage") == "base":
        settings["method"] = "base"
    parts = [settings[key] for key in ("run", "method", "losses") if key in settings]
    named = {"success": "success", "n0": "allocation.n0", "seed": "seed"}
    parts += [f"{name}={settings[key]}" for name, key in named.items() if key in settings]
    return " ".join(parts) or " ".join(command)
