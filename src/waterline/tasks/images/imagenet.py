"""ImageNet-1K as a task, or any other folders of images in its form."""

from pathlib import Path
from typing import Annotated, ClassVar

from annotated_types import Ge

from waterline.runs.settings import Text, Whole, checked
from waterline.tasks.images.image_files import FileSplit, ImageFiles
from waterline.tasks.images.image_folders import FolderFiles, open_folders, require_disjoint
from waterline.tasks.images.image_table import open_table
from waterline.tasks.images.image_task import ImageSplit
from waterline.tasks.images.transforms import ImageNetTransform


class ImageNetTask:
    """Name the class of a photograph, out of ``classes``.

    With ``root`` the images are files, ``root``/train/<class>/ and ``root``/val/<class>/ (or
    validation/), and the sorted class names are the labels. Without it they come from ``dataset``
    on the Hugging Face Hub, or in a local folder that ``datasets`` reads.

    The papers follow their curves and report on one set, the validation images: ``dev`` and
    ``test`` are both that set, and have the same ids. The id of a training image is its row in the
    data set, or its place in the order of class and file name; the ids of the validation images
    follow that of the last training image. Files that cannot be decoded keep their ids.

    ``crop`` is the side of the images in pixels, ``resize`` that of the shorter side before an
    image of evaluation is cropped; training crops at random.

    Source: MaxRL, App. D; SERA, App. D.1.1. Raises ValueError for impossible sizes, for classes
    that are missing, empty or too many, for labels out of range, and for missing data.
    """

    has_likelihood: ClassVar[bool] = True
    answers: ClassVar[str] = "label"

    @checked
    def __init__(
        self,
        root: str | Path | None = None,
        dataset: Text = "benjamin-paine/imagenet-1k-256x256",
        classes: Annotated[int, Ge(2)] = 1000,
        crop: Whole = 224,
        resize: Whole = 256,
    ) -> None:
        if crop > resize:
            raise ValueError(
                f"task.crop is {crop} and task.resize {resize} pixels; give a crop of at least 1"
                " that is no larger than resize, or its rim would be empty."
            )
        self.classes = classes
        train: ImageFiles
        validation: ImageFiles
        if root is None:
            train, validation = open_table(dataset, classes)
        else:
            train, validation = open_folders(Path(root).expanduser(), classes)
        self._files = train, validation
        self.fingerprint = f"{train.fingerprint}-{validation.fingerprint}"
        transform = ImageNetTransform(crop, resize)
        held_out = FileSplit(validation, transform, first_id=len(train.labels))
        self.splits: dict[str, ImageSplit] = {
            "train": FileSplit(train, transform, first_id=0),
            "dev": held_out,
            "test": held_out,
        }

    def require_disjoint(self) -> None:
        """Raise ValueError for files of ``root`` that are in train/ and in val/."""
        train, validation = self._files
        if isinstance(train, FolderFiles) and isinstance(validation, FolderFiles):
            require_disjoint(train, validation)
