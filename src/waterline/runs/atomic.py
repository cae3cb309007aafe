"""Files that are either the old ones or the new ones, whenever the process is killed."""

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

PARTIAL_SUFFIX = ".partial"


def atomic_write(
    path: str | os.PathLike[str], content: bytes | str | Callable[[BinaryIO], object]
) -> None:
    """Replace the file at ``path`` in one step: temporary file, fsync, rename, fsync of the folder.

    Args:
        path: The file to write; its folder is created when missing.
        content: The bytes, the text (written as UTF-8), or a callable that writes into the open
            binary file it is given (``lambda file: torch.save(state, file)``).

    A process killed at any moment leaves the old content or the new one under ``path``, and at
    worst a ``.partial`` file next to it, which :func:`remove_partial_files` clears away.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _write(target, content)
    except OSError as error:
        error.filename, error.filename2 = str(target), None  # not that of the temporary file
        raise


def _write(target: Path, content: bytes | str | Callable[[BinaryIO], object]) -> None:
    # In the same folder, since a rename is atomic only within one file system.
    partial = target.parent / f".{target.name}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}"
    try:
        with open(partial, "xb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    # The rename itself outlives a power cut only once its folder is on the disk.
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_partial_files(folder: str | os.PathLike[str]) -> int:
    """Remove what killed writers left anywhere below ``folder``; only its owner may call this.

    Returns:
        The number of files removed; what cannot be removed is harmless.
    """
    removed = 0
    for leftover in list(Path(folder).rglob(f".*{PARTIAL_SUFFIX}")):
        with contextlib.suppress(OSError):
            leftover.unlink()
            removed += 1
    return removed
