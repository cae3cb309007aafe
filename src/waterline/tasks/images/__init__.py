"""Image classification as a one-step task with an exact likelihood."""

from waterline.tasks.images.image_task import Images, ImageSplit, ImageTask, Unreadable

__all__ = ["ImageSplit", "ImageTask", "Images", "Unreadable"]
