"""Residual networks of torchvision's parts, from random weights."""

from collections.abc import Sequence

import torch
from torch import nn
from torchvision.models import resnet50 as torchvision_resnet50
from torchvision.models.resnet import BasicBlock, conv1x1


def resnet50(classes: int = 1000, seed: int = 0) -> nn.Module:
    """ResNet-50 (He et al., CVPR 2016) with torchvision's default initialisation.

    Args:
        classes: outputs. seed: of the initial weights; the global generator is left alone.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: nn.Module = torchvision_resnet50(weights=None, num_classes=classes)
    return model


def small_resnet(
    classes: int, widths: Sequence[int] = (32, 64, 128), blocks: int = 1, channels: int = 1,
    seed: int = 0,
) -> nn.Module:  # fmt: skip
    """A ResNet of basic blocks for images of about 32×32 pixels.

    A 3×3 convolution of stride 2, then a stage of ``blocks`` basic blocks for each width, each
    stage after the first at half the resolution, mean pooling and a linear layer. Convolutions are
    initialised as in torchvision's ResNets.

    Args:
        classes: outputs. widths: channels of each stage. blocks: per stage.
        channels: of the images.
        seed: of the initial weights; the global generator is left alone.

    Raises:
        ValueError: no widths, or a number below 1.
    """
    numbers = [*widths, blocks] if isinstance(widths, Sequence) else []
    if len(numbers) < 2 or not all(isinstance(n, int) and n >= 1 for n in numbers):
        raise ValueError(
            f"small_resnet has widths={widths} and blocks={blocks}: give a list of at least one "
            "width, all of them whole numbers of at least 1."
        )
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
