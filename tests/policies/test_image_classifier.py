"""Classifiers: their networks, their initial weights, and BatchNorm that stays as it is."""

import pytest
import torch
from torch import nn
from torchvision.models import resnet50 as torchvision_resnet50

from waterline.policies import ImageClassifier
from waterline.policies.resnets import resnet50, small_resnet


def images(n=4, channels=1, side=16):
    return torch.randn(n, channels, side, side, generator=torch.Generator().manual_seed(0))


def batch_norms(model):
    return [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]


def same(a, b):
    return all(torch.equal(x, b[name]) for name, x in a.items()) and a.keys() == b.keys()


@pytest.mark.parametrize("side", [8, 16, 32])
def test_a_small_resnet_gives_a_logit_per_class(side):
    model = small_resnet(7, widths=(4, 8, 12), blocks=2, channels=3)
    logits = model(images(2, 3, side))
    assert logits.shape == (2, 7)
    assert logits.dtype == torch.float32
    assert logits.isfinite().all()


def test_a_small_resnet_has_the_widths_and_blocks_asked_for():
    model = small_resnet(7, widths=(4, 8), blocks=2)
    convolutions = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    assert [m.out_channels for m in convolutions] == [4, 4, 4, 4, 4, 8, 8, 8, 8, 8]
    assert sum(m.stride == (2, 2) for m in convolutions) == 3  # the stem, a block, its shortcut


def test_convolutions_start_with_the_variance_2_over_fan_out():
    for convolution in small_resnet(7, widths=(64, 128)).modules():
        if isinstance(convolution, nn.Conv2d) and convolution.weight.numel() > 5_000:
            fan_out = convolution.out_channels * convolution.kernel_size[0] ** 2
            std = float(convolution.weight.detach().std())
            assert std == pytest.approx((2 / fan_out) ** 0.5, rel=0.05)


@pytest.mark.parametrize("make", [resnet50, small_resnet])
def test_weights_follow_from_the_seed_alone(make):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = make(5, seed=3).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert same(one, make(5, seed=3).state_dict())
    assert not same(one, make(5, seed=4).state_dict())


def test_resnet50_is_torchvisions_from_its_own_initialisation():
    torch.manual_seed(0)
    expected = torchvision_resnet50(weights=None, num_classes=1000)
    model = resnet50(1000, seed=0)
    assert same(model.state_dict(), expected.state_dict())
    assert sum(p.numel() for p in model.parameters()) == 25_557_032


def test_batch_norm_follows_the_batches_unless_it_is_frozen():
    for frozen in (False, True):
        policy = ImageClassifier(small_resnet(3, (4,)), frozen_batch_norm=frozen)
        policy.train()
        assert policy.training
        norms = batch_norms(policy)
        before = [m.running_mean.clone() for m in norms]
        policy(images())
        moved = [not torch.equal(m.running_mean, b) for m, b in zip(norms, before, strict=True)]
        assert moved == [not frozen] * len(norms)
        assert [m.training for m in norms] == [not frozen] * len(norms)
        policy.eval()
        policy.train()
        assert [m.training for m in norms] == [not frozen] * len(norms)


def test_frozen_batch_norm_makes_the_loss_a_sum_over_images():
    batch = images()
    for frozen in (False, True):
        policy = ImageClassifier(small_resnet(3, (4,)), frozen_batch_norm=frozen).train()
        together, apart = policy(batch), torch.cat([policy(x[None]) for x in batch])
        assert torch.allclose(together, apart, atol=1e-6) is frozen


def test_parameters_of_frozen_batch_norm_are_trained():
    policy = ImageClassifier(small_resnet(3, (4,)), frozen_batch_norm=True).train()
    policy(images()).logsumexp(1).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in policy.parameters())
