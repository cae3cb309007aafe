"""A base that hardly ever succeeds is reported where a user of an unequal allocator meets it."""

import logging

import pytest

from training.tiny import tiny
from waterline.training.run import train

WEAK = ("supervised.steps=1", "training.steps=4", "evaluation.every=0")
# Enough rollouts to solve most prompts once with the policy of the fixture.
MANY = ("evaluation.every=0", "allocation.n0=64", "allocation.n_max=128")


@pytest.mark.parametrize(("method", "warned"), [("sera", True), ("maxrl", False)])
def test_a_weak_base_is_reported_after_the_first_epoch(tmp_path, caplog, method, warned):
    logging.getLogger("waterline").propagate = True
    with caplog.at_level(logging.WARNING, logger="waterline"):
        train(*tiny(tmp_path, *WEAK, method=method))
    warnings = [m for m in caplog.messages if "no success in the first epoch" in m]
    assert len(warnings) == warned
    assert all("100% of the training prompts" in m for m in warnings)


def test_a_good_base_is_not(tmp_path, caplog, base):
    with caplog.at_level(logging.WARNING, logger="waterline"):
        train(*tiny(tmp_path, f"base.path={base}", "training.steps=4", *MANY))
    assert not [m for m in caplog.messages if "no success in the first epoch" in m]
