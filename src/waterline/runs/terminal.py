"""Output that outlives its reader, and errors of files as sentences."""

import codecs
import contextlib
import errno
import os
import sys
from typing import Any, TextIO

# What a terminal of few letters shows instead; any other letter it lacks becomes '?'.
_PLAIN = {"−": "-", "–": "-", "—": "-", "•": "*", "…": "...", "×": "x", "“": '"', "”": '"'}

_GONE = "check the path"
_FULL = "make room there, and give the same command again"
_CLOSED = "get the right to use it, or choose another folder"
_IN_THE_WAY = "a file is where a folder should be, or a folder where a file should be; move it away"
_ADVICE = {
    errno.EACCES: _CLOSED, errno.EPERM: _CLOSED, errno.EROFS: _CLOSED,
    errno.ENOSPC: _FULL, errno.EDQUOT: _FULL, errno.EFBIG: _FULL,
    errno.EEXIST: _IN_THE_WAY, errno.ENOTDIR: _IN_THE_WAY, errno.EISDIR: _IN_THE_WAY,
    errno.ENOENT: _GONE, errno.ELOOP: _GONE, errno.ENAMETOOLONG: _GONE, errno.ENXIO: _GONE,
    errno.EIO: "check the disk", errno.ESTALE: "check the disk",
    errno.EMFILE: "raise `ulimit -n`", errno.ENFILE: "raise `ulimit -n`",
}  # fmt: skip


def file_fault(error: OSError) -> tuple[str, int] | None:
    """One sentence on a file that cannot be read or written, and the exit status.

    The status is 1 for what befalls a run, such as a full disk, and 2 for what a user can fix. None
    for errors that are not about files.
    """
    if (advice := _ADVICE.get(error.errno or 0)) is None:
        return None
    sentence = f"{error.filename or 'A file'}: {error.strerror}: {advice}."
    return sentence, 1 if advice in (_FULL, "check the disk") else 2


def steady_streams() -> None:
    """Make stdout and stderr take any letter, and go on when nobody reads them any more.

    A finished run is one, whether its last lines were read (``| head -1``) or not. A closed stream
    is opened on nothing: else the next file opened would get its number, and what is printed.
    """
    codecs.register_error("plain", _plain)
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__"):
            continue  # a notebook's or a test's own
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        elif isinstance(stream, _Steady):
            continue
        else:
            stream.reconfigure(errors="plain")
        steady = _Steady(stream, name)
        for shown in (name, f"__{name}__"):
            setattr(sys, shown, steady)


class _Steady:
    """A text stream whose writes do not fail: after the first that would, they go nowhere."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream, self._name = stream, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._give_up(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        with contextlib.suppress(OSError):
            # What is still in the buffer, and what children print, goes there as well.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        if self._name == "stdout" and not isinstance(error, BrokenPipeError):
            print(f"What follows is not shown, since stdout fails: {error}.", file=sys.stderr)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in lost), error.end
