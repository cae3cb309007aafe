"""The optimizer takes what its settings allow."""

import pytest
import torch

from waterline.training.optimizer import OptimizerSettings


@pytest.mark.parametrize(
    "settings",
    [{"betas": (0, 0)}, {"betas": (0, 0.9)}, {"lr": 1}, {"lr": 1e30}, {"weight_decay": 1},
     {"weight_decay": 0}, {"eps": 1}, {"grad_clip": None}, {"algorithm": "sgd", "momentum": 0},
     {"algorithm": "sgd", "momentum": 0, "weight_decay": 1}],
)  # fmt: skip
def test_values_within_the_bounds_make_a_step(settings):
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = OptimizerSettings(**{"lr": 0.1, **settings}).build([weight])
    weight.grad = torch.ones(2)
    optimizer.step()
    assert not weight.equal(torch.ones(2))
