"""Image classification as a one-step task with an exact likelihood."""

from waterline.tasks.images.glyphs import GlyphsTask
from waterline.tasks.images.image_task import Images, ImageSplit, ImageTask, Unreadable
from waterline.tasks.images.imagenet import ImageNetTask

__all__ = ["GlyphsTask", "ImageNetTask", "ImageSplit", "ImageTask", "Images", "Unreadable"]
