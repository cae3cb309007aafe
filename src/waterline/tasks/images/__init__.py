"""Image classification as a one-step task with an exact likelihood."""

from waterline.tasks.images.glyphs import GlyphsTask
from waterline.tasks.images.image_task import Images, ImageSplit, ImageTask, Unreadable
from waterline.tasks.images.imagenet import ImageNetTask
from waterline.tasks.images.loading import FixedBatches, loader, mislabelled

__all__ = [
    "FixedBatches",
    "GlyphsTask",
    "ImageNetTask",
    "ImageSplit",
    "ImageTask",
    "Images",
    "Unreadable",
    "loader",
    "mislabelled",
]
