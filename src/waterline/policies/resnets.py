"""Residual networks of torchvision's parts, from random weights."""

from collections.abc import Sequence
from typing import Annotated

import torch
from annotated_types import MinLen
from torch import nn
from torchvision.models import resnet50 as torchvision_resnet50
from torchvision.models.resnet import BasicBlock, conv1x1

from waterline.runs.settings import Seed, Whole, checked

Widths = Annotated[Sequence[Whole], MinLen(1)]


@checked
def resnet50(classes: Whole = 1000, seed: Seed = 0) -> nn.Module:
    """ResNet-50 (He et al., CVPR 2016) with torchvision's default initialisation.

    Args:
        classes: outputs. seed: of the initial weights; the global generator is left alone.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: nn.Module = torchvision_resnet50(weights=None, num_classes=classes)
    return model


@checked
def small_resnet(
    classes: Whole, widths: Widths = (32, 64, 128), blocks: Whole = 1, channels: Whole = 1,
    seed: Seed = 0,
) -> nn.Module:  # fmt: skip
    """A ResNet of basic blocks for images of about 32×32 pixels.

    A 3×3 convolution of stride 2, then a stage of ``blocks`` basic blocks for each width, each
    stage after the first at half the resolution, mean pooling and a linear layer. Convolutions are
    initialised as in torchvision's ResNets.

    Args:
        classes: outputs. widths: channels of each stage. blocks: per stage.
        channels: of the images.
        seed: of the initial weights; the global generator is left alone.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        width = widths[0]
        layers: list[nn.Module] = [
            nn.Conv2d(channels, width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        ]
        for stage, wider in enumerate(widths):
            for block in range(blocks):
                layers.append(_block(width, wider, 2 if stage and not block else 1))
                width = wider
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)]
        model = nn.Sequential(*layers)
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model


def _block(width: int, wider: int, stride: int) -> nn.Module:
    shortcut = None
    if stride != 1 or width != wider:
        shortcut = nn.Sequential(conv1x1(width, wider, stride), nn.BatchNorm2d(wider))
    block: nn.Module = BasicBlock(width, wider, stride, shortcut)
    return block
