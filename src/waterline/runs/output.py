"""Standard output that never ends the work that is reported on it."""

import io
import os
import sys
from typing import Any


def outlive_readers() -> None:
    """Lets a command go on, and end with its true status, whatever becomes of its output.

    A reader that leaves early (``| head -1``), a full disk behind ``>``, a closed descriptor: what
    is printed after that is dropped. Letters that the terminal's encoding lacks become '?'.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed before we began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
            setattr(sys, name, _Outliving(stream))


class _Outliving:
    """A stream whose failed writes turn it into one that takes everything and keeps nothing."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):  # a descriptor that was closed is a ValueError
            self._drop()
            return len(text)

    def writelines(self, lines: Any) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._drop()

    def _drop(self) -> None:
        """The descriptor itself leads nowhere from now on, also for the flush at the very end."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, self._stream.fileno())
        except (OSError, ValueError):
            pass
        finally:
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
