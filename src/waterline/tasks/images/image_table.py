"""Image files in a data set of the Hugging Face Hub."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from waterline.tasks.images.image_folders import some

if TYPE_CHECKING:
    from datasets import Dataset


class TableFiles:
    """The image files in the column ``image`` of a table, labelled in the column ``label``.

    ``name`` is the data set and split, for messages.

    Raises ValueError for a label outside 0 … ``classes`` − 1, for a class without an image, and
    when the columns are missing.
    """

    def __init__(self, table: "Dataset", name: str, classes: int) -> None:
        from datasets import ClassLabel, Image

        for column in ("image", "label"):
            if column not in table.column_names:
                raise ValueError(
                    f"{name} has no column {column}; take a data set with image and label."
                )
        feature = table.features["label"]
        if isinstance(feature, ClassLabel) and feature.num_classes != classes:
            raise ValueError(
                f"{name} has {feature.num_classes} classes, but task.classes is {classes};"
                f" set task.classes={feature.num_classes} or take another data set."
            )
        self.table_name = name
        self.labels: NDArray[np.int64] = _labels(table, name, classes)
        # Undecoded: the library would raise at the first damaged file and end the run.
        self.images = table.select_columns("image").cast_column("image", Image(decode=False))

    @property
    def fingerprint(self) -> str:
        """A digest of the labels, whose order is that of the images."""
        return hashlib.sha256(self.labels.tobytes()).hexdigest()[:12]

    def read(self, row: int) -> bytes:
        """The bytes of the file of this row, unchecked."""
        image: dict[str, Any] = self.images[row]["image"] or {}
        if (data := image.get("bytes")) is None and image.get("path") is None:
            raise ValueError("the row holds no image")
        return Path(image["path"]).read_bytes() if data is None else bytes(data)

    def name(self, row: int) -> str:
        """The data set, split and row."""
        return f"row {row} of {self.table_name}"


def _labels(table: "Dataset", name: str, classes: int) -> NDArray[np.int64]:
    column = table.data.column("label")
    try:
        labels = column.to_numpy().astype(np.int64, casting="same_kind")
    except TypeError:
        raise ValueError(
            f"{name} has labels that are not whole numbers, of type {column.type}"
            f"{' with gaps' * (column.null_count > 0)}; take a data set with a class for each row."
        ) from None
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        raise ValueError(
            f"Row {wrong[0]} of {name} has the label {labels[wrong[0]]}, outside 0 to"
            f" {classes - 1}, as have {len(wrong) - 1} more; correct it or set task.classes."
        )
    unused = np.flatnonzero(np.bincount(labels, minlength=classes) == 0)
    if len(unused):
        gaps = some(unused.tolist())
        raise ValueError(f"{name} has no image of class {gaps}; complete it or set task.classes.")
    return np.ascontiguousarray(labels)


def open_table(dataset: str, classes: int) -> tuple[TableFiles, TableFiles]:
    """The training and the validation images of ``dataset``, downloaded once and then cached.

    ``dataset`` is a name on the Hub or a local folder that ``datasets.load_dataset`` reads.

    Raises ValueError when it cannot be loaded, and for what :class:`TableFiles` refuses.
    """
    from datasets import load_dataset

    opened = []
    for split in ("train", "validation"):
        try:
            table = load_dataset(dataset, split=split)
        except Exception as error:  # of the library, of its transport, of the file system
            reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
            raise ValueError(
                f"The data set {dataset!r} cannot be loaded ({reason}): check its name and the"
                " connection, or set task.root to a folder with train/ and val/."
            ) from None
        opened.append(TableFiles(table, f"{dataset} ({split})", classes))
    return opened[0], opened[1]
