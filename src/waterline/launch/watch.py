"""What the terminal shows while jobs run, read from their run folders."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from waterline.launch.finish import read_final
from waterline.runs import RunFolder

_POLL_SECONDS = 1.0
_TAIL_BYTES = 1 << 16


@dataclass(frozen=True)
class Progress:
    """Where a run stands: its state, its last step of all steps, the metrics of that step."""

    state: str
    step: int
    of: int
    row: Mapping[str, Any] = field(default_factory=dict)


def progress(root: Path, since: float = 0.0) -> Progress | None:
    """Reads a run folder; None when nothing has written in it since the time ``since``.

    None too where it cannot be read, as while a file is being replaced.
    """
    try:
        return _progress(root, since)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _progress(root: Path, since: float) -> Progress | None:
    folder = RunFolder(root)
    if not folder.status.exists() or not folder.config.exists():
        return None
    final = root / "final.json"
    written = [file.stat().st_mtime for file in (folder.status, final) if file.exists()]
    if max(written) < since:
        return None
    state = str(folder.state())
    if state == "done" and final.exists() and final.stat().st_mtime >= since:
        state = str(read_final(root)["state"])
    row = _last_row(folder.metrics)
    return Progress(state, int(row.get("step", 0)), _steps(folder), row)


def _steps(folder: RunFolder) -> int:
    config = folder.read_config()
    return int(config["supervised" if config["method"] == "base" else "training"]["steps"])


def _last_row(metrics: Path) -> dict[str, Any]:
    """The last whole line; the file grows while it is read."""
    if not metrics.exists():
        return {}
    with open(metrics, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = file.read().split(b"\n")[:-1]
    row: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return row


def say(console: Console, line: str) -> None:
    """Prints a line as it is."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


class Watch:
    """Follows runs by name, until the ``with`` block ends: live on a terminal, else line by line.

    A line is printed when a job starts, ends or fails, and without a terminal for each quarter of
    its way. That a job has ended is what its launcher
    reports with :meth:`ended`; without it, what the run folder says.
    """

    def __init__(
        self, console: Console, title: str, folders: Mapping[str, str | Path | None]
    ) -> None:
        self.console, self.title = console, title
        self.folders = {name: Path(root) if root else None for name, root in folders.items()}
        self.seen: dict[str, Progress] = {}
        self._ended: dict[str, bool] = {}
        self._firsts: dict[str, tuple[float, int]] = {}
        self._quarters: dict[str, int] = {}
        self._over, self._lock = threading.Event(), threading.Lock()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        self.say(self.title)
        # Times of files come from another clock, at worst that of a file server.
        self._began, self._since = time.monotonic(), time.time() - 2
        if self.console.is_terminal:
            self._live = Live(console=self.console, auto_refresh=False, transient=True)
            self._live.start()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()
        for name, seen in self.seen.items():
            if name not in self._ended and seen.state in ("done", "failed"):
                self.ended(name, None if seen.state == "done" else "see log.txt in its folder")
        if self._live:
            self._live.stop()

    def say(self, line: str) -> None:
        """Prints a line above the table."""
        say(self.console, line)

    def ended(self, name: str, reason: str | None) -> None:
        """A job's end: None for success, else why it failed."""
        with self._lock:
            self._ended[name] = reason is None
            number = f"{len(self._ended)}/{len(self.folders)}"
        said = "done" if reason is None else f"FAILED ({reason})"
        minutes = (time.monotonic() - self._began) / 60
        self.say(f"  {number} {said} at {minutes:.1f} min: {name}")

    def _follow(self) -> None:
        while not self._over.wait(_POLL_SECONDS):
            self._look()

    def _look(self) -> None:
        for name, root in self.folders.items():
            if name in self._ended or root is None:
                continue
            if (found := progress(root, self._since)) is None:
                continue
            if name not in self.seen:
                self._firsts[name] = time.monotonic(), found.step
                self._quarters[name] = _quarter(found)
                if not self._live:
                    self.say(f"  started at step {found.step}/{found.of}: {name}")
            self.seen[name] = found
            if not self._live and _quarter(found) > self._quarters[name]:
                self._quarters[name] = _quarter(found)
                self.say(f"  {self._line(name)}")
        if self._live:
            self._live.update(self.table(), refresh=True)

    def table(self) -> Table:
        """The jobs that are running, and how many are not."""
        table = Table(box=None, padding=(0, 1), show_footer=True)
        waiting = sum(name not in self.seen and name not in self._ended for name in self.folders)
        table.add_column("job", footer=f"{len(self._ended)} ended, {waiting} waiting")
        for header in ("state", "step", "reward", "mixed", "left"):
            table.add_column(header, justify="right", no_wrap=True)
        for name, seen in list(self.seen.items()):
            if name not in self._ended:
                row = seen.row
                table.add_row(
                    name, seen.state, f"{seen.step}/{seen.of}", _number(row.get("reward/mean")),
                    _number(row.get("groups/mixed_of_batch")), self._left(name),
                )  # fmt: skip
        return table

    def _line(self, name: str) -> str:
        seen = self.seen[name]
        parts = [f"step {seen.step}/{seen.of}"]
        for word, metric in (("reward", "reward/mean"), ("mixed", "groups/mixed_of_batch")):
            parts += [f"{word} {value}"] if (value := _number(seen.row.get(metric))) else []
        parts += [f"{left} left"] if (left := self._left(name)) else []
        return f"{', '.join(parts)}: {name}"

    def _left(self, name: str) -> str:
        began, first = self._firsts[name]
        seen = self.seen[name]
        if seen.state != "running" or seen.step <= first:
            return ""
        seconds = (time.monotonic() - began) * (seen.of - seen.step) / (seen.step - first)
        return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def _quarter(seen: Progress) -> int:
    return 4 * seen.step // max(seen.of, 1)


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else ""
