"""A network that gives one logit per class."""

from collections.abc import Callable
from typing import ClassVar, Self

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from waterline.runs.settings import checked


class ImageClassifier(nn.Module):
    """π(a|q) = softmax(logits of image q) over class labels a, in float32.

    Args:
        model: (b, C, H, W) images to (b, classes) logits.
        frozen_batch_norm: whether BatchNorm uses its running statistics in training too, and keeps
            them. The loss is then a sum over images, the same however they are dealt out to ranks;
            otherwise statistics are those of the images of one rank, as in the papers' runs.
    """

    responses: ClassVar[str] = "labels"
    precision = "float32"

    def __init__(self, model: nn.Module, frozen_batch_norm: bool = False) -> None:
        super().__init__()
        self.model = model
        self.frozen_batch_norm = frozen_batch_norm

    def train(self, mode: bool = True) -> Self:
        """Training mode, in which frozen BatchNorm layers stay in evaluation mode."""
        super().train(mode)
        if self.frozen_batch_norm:
            for module in self.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """(b, C, H, W) float32 to (b, classes) float32."""
        logits: Tensor = self.model(images)
        return logits


@checked
def image_classifier(
    model: Callable[[], nn.Module], frozen_batch_norm: bool = False
) -> ImageClassifier:
    """The policy of a configuration: a network and what becomes of its BatchNorm."""
    return ImageClassifier(model(), frozen_batch_norm)
