"""Image files in one folder for each class."""

import filecmp
import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torchvision.datasets.folder import IMG_EXTENSIONS

_ENDINGS = tuple(IMG_EXTENSIONS)


class FolderFiles:
    """The image files of the folders ``folder``/<class>, in the order of class and file name.

    The ending of a file's name decides whether it is an image, as in torchvision's
    ``ImageFolder``; other files, hidden ones and folders within are ignored. No file is opened.

    Raises ValueError for a class folder without an image, or one that cannot be read.
    """

    def __init__(self, folder: Path, classes: Sequence[str]) -> None:
        self.folder = folder
        self.classes = tuple(classes)
        names: list[bytes] = []
        counts: list[int] = []
        for name in self.classes:
            found = _image_names(folder / name)
            names += map(os.fsencode, found)
            counts.append(len(found))
        self.labels: NDArray[np.int64] = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        # One block of bytes for a million names: a list of strings would be copied, page by page,
        # into every loader worker that counts references to them.
        self._names = np.frombuffer(b"".join(names), dtype=np.uint8)
        self._ends = np.cumsum([len(name) for name in names], dtype=np.int64)

    def place(self, row: int) -> tuple[str, str]:
        """The class and the file name of this row."""
        start = int(self._ends[row - 1]) if row else 0
        name = os.fsdecode(self._names[start : int(self._ends[row])].tobytes())
        return self.classes[int(self.labels[row])], name

    @property
    def fingerprint(self) -> str:
        """A digest of the names of classes and files; reading the files would take hours."""
        whole = hashlib.sha256(b"/".join(map(os.fsencode, self.classes)))
        for part in (self.labels, self._ends, self._names):
            whole.update(part.tobytes())
        return whole.hexdigest()[:12]

    def read(self, row: int) -> bytes:
        """The bytes of the file of this row, unchecked."""
        return self.folder.joinpath(*self.place(row)).read_bytes()

    def name(self, row: int) -> str:
        """The file's path from the folder that holds the splits."""
        return "/".join((self.folder.name, *self.place(row)))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise ValueError(
            f"The folder {folder} cannot be read ({error.strerror}); check task.root."
        ) from None


def _image_names(folder: Path) -> list[str]:
    names = sorted(
        (
            entry.name
            for entry in _entries(folder)
            # Links are not followed: a million files would be asked for one by one.
            if entry.name.lower().endswith(_ENDINGS)
            and (entry.is_file(follow_symlinks=False) or entry.is_symlink())
        ),
        key=os.fsencode,
    )
    if not names:
        raise ValueError(
            f"The class folder {folder} holds no image ({', '.join(_ENDINGS)}); fill or remove it."
        )
    return names


def _class_names(folder: Path) -> list[str]:
    names = sorted((e.name for e in _entries(folder) if e.is_dir()), key=os.fsencode)
    if not names:
        raise ValueError(f"{folder} has no class folders; sort its images into one for each class.")
    return names


def some(names: Sequence[object]) -> str:
    """The first three names, and how many more there are."""
    return ", ".join(map(str, names[:3])) + (
        f" and {len(names) - 3} more" if len(names) > 3 else ""
    )


def open_folders(root: Path, classes: int) -> tuple[FolderFiles, FolderFiles]:
    """The training and the validation images below ``root``.

    They are in ``train/<class>/`` and in ``val/<class>/`` or ``validation/<class>/``. The sorted
    names of the class folders are the labels 0, 1, ….

    Raises ValueError when a folder is missing, when the two have different classes, when there are
    not ``classes`` of them, and when one is empty.
    """
    if not root.is_dir():
        raise ValueError(f"There is no folder {root}; set task.root to one that holds train/.")
    held_out = root / "val" if (root / "val").is_dir() else root / "validation"
    for folder, name in ((root / "train", "train/"), (held_out, "val/ (or validation/)")):
        if not folder.is_dir():
            raise ValueError(f"{root} has no folder {name} with one folder of images a class.")
    train, val = _class_names(root / "train"), _class_names(held_out)
    for here, there, name in ((train, val, held_out.name), (val, train, "train")):
        missing = sorted(set(here) - set(there))
        if missing:
            raise ValueError(
                f"{root / name} has no class folder {some(missing)}, but the other split has: both"
                " need the same classes."
            )
    if len(train) != classes:
        raise ValueError(
            f"{root} has {len(train)} class folders, {some(train)}, but task.classes is {classes};"
            f" complete the folders or set task.classes={len(train)}."
        )
    return FolderFiles(root / "train", train), FolderFiles(held_out, val)


def require_disjoint(train: FolderFiles, val: FolderFiles) -> None:
    """Raise ValueError for training images that are in the same class of ``val``.

    They agree in class, name and bytes; the bytes are read where class and name do, which in
    ImageNet is nowhere.
    """
    held_out = {val.place(row) for row in range(len(val.labels))}
    both = []
    for row in range(len(train.labels)):
        if (place := train.place(row)) in held_out:
            files = train.folder.joinpath(*place), val.folder.joinpath(*place)
            with suppress(OSError):  # what cannot be read is reported when it is needed
                if filecmp.cmp(*files, shallow=False):
                    both.append(train.name(row))
    if both:
        raise ValueError(
            f"{some(both)} below {train.folder.parent} stand in {val.folder.name}/ as well, byte"
            " for byte: what is tested on must not be trained on, so remove them from one."
        )
