"""A lock on a folder that the kernel releases when its owner dies, however it dies."""

import contextlib
import errno
import fcntl
import os
import weakref
from pathlib import Path

from waterline.runs.checks import BadInput


class FolderBusy(BadInput):
    """Another process holds the lock of a folder."""


class FolderLock:
    """The right to write in one folder, held by at most one process of a machine.

    ``flock`` on ``<folder>/.lock``: a lock left by a killed process does not exist, so there is
    nothing stale to clean up. On Linux this holds over NFS as well.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / ".lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock without waiting.

        A folder in which nothing can be written needs none: it is read, and a write fails.

        Raises:
            FolderBusy: Another process, or another lock of this one, holds it.
        """
        if self._descriptor is not None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            try:
                descriptor = os.open(self.path, os.O_RDONLY)  # it may be another user's
            except OSError:
                return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise FolderBusy(
                f"Process {owner} is already writing in {self.path.parent}: wait until it ends, "
                "stop it, or choose another seed or setting."
            ) from None
        with contextlib.suppress(OSError):  # the disk is full: the lock holds without a name
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        # A forked data-loader worker would inherit the lock, and keep it when its parent is killed.
        itself = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _forget(itself))

    def release(self) -> None:
        """Give the lock back; doing so twice is harmless."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _forget(reference: "weakref.ref[FolderLock]") -> None:
    if (lock := reference()) is not None:
        lock.release()
