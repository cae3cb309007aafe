"""Every setting of every configuration is refused a wrong value, in one sentence that names it."""

import copy
import math

import pytest

from test_configs import EXPERIMENTS, compose
from waterline.runs import BadInput
from waterline.runs.identity import leaves
from waterline.runs.settings import TARGET, check_settings
from waterline.training.assemble import check_config
from waterline.training.settings import SECTIONS

# What may be null although it has a value in some configuration.
NULLABLE = {
    "base.path", "final.gradients.checkpoints", "final.gradients.n0", "final.split",
    "logger.entity", "losses.clip_high", "losses.clip_low", "losses.dual_clip", "losses.kl",
    "losses.length_cap",
    "success.probability", "supervised", "supervised.optimizer.grad_clip", "task.path", "task.root",
    "trainer.threads", "training.optimizer.grad_clip", "training.optimizer.horizon",
}  # fmt: skip
NEGATIVE = {"task.seed", "losses.entropy_coef", "losses.kl_coef"}  # in one loss or another
TEXT = {"task.path", "task.root", "base.path", "logger.entity"}  # any text, or null
CASES = [(experiment, "sera") for experiment in EXPERIMENTS]
CASES += [("maze/laptop", method) for method in ("sera_pilot", "grpo", "pkpo")]
CASES += [("imagenet/laptop", "ce")]


def composed(experiment, method):
    extra = ["trainer=cpu"] if "paper" in experiment else []
    return compose(*extra, experiment=experiment, method=method)


def wrong_values(path, value):
    yield {"a": 1}
    if isinstance(value, bool):
        yield from ("maybe", 1, 0.5, [True])
    elif isinstance(value, int | float):
        yield from ("x", True, [value], math.inf, math.nan)
        yield from () if path in NEGATIVE else (-1,)
        yield from (1.5, 10.0**3) if isinstance(value, int) and "lr" not in path else ()
    elif isinstance(value, str):
        yield from (5, True, [value], "")
    elif isinstance(value, list):
        yield from (3, "x", ["x"], [True], [-1], [math.nan])
    elif path in TEXT:
        yield from (5, True, ["x"])
    if value is not None and path not in NULLABLE:
        yield None


def floats(config):
    """The settings whose hint is a number, though a whole one stands in the configuration."""
    return {path for path, value in leaves(config).items() if is_accepted(config, path, 0.37)}


def changed(config, path, value):
    found = copy.deepcopy(config)
    node, *keys = found, *path.split(".")
    for key in keys[:-1]:
        node = node[key]
    node[keys[-1]] = value
    return found


def is_accepted(config, path, value):
    try:
        check_settings(changed(config, path, value), SECTIONS)
    except BadInput:
        return False
    return True


@pytest.mark.parametrize(("experiment", "method"), CASES)
def test_every_leaf_refuses_what_its_type_and_range_do_not_allow(experiment, method):
    config = composed(experiment, method)
    check_config(config)
    numbers = floats(config)
    tried = 0
    for path, given in leaves(config).items():
        if path.endswith(TARGET):
            continue
        for value in wrong_values(path, given):
            if path in numbers and isinstance(value, float) and math.isfinite(value):
                continue
            tried += 1
            with pytest.raises(BadInput) as caught:
                check_config(changed(config, path, value))
            message = str(caught.value)
            assert path.split(".")[-1] in message, (path, value, message)
            assert path.split(".")[0] in message, (path, value, message)
            assert "\n" not in message
            assert message.endswith(".")
    assert tried > 300


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_node_refuses_what_is_no_node(experiment):
    config = composed(experiment, "sera")

    def nodes(node, before=""):
        for key, value in node.items():
            if isinstance(value, dict):
                yield f"{before}{key}"
                yield from nodes(value, f"{before}{key}.")

    for path in nodes(config):
        for value in (None, "x", 3, [1], {}, True):
            if value is None and path in NULLABLE:
                continue
            with pytest.raises(BadInput) as caught:
                check_config(changed(config, path, value))
            assert path.split(".")[-1] in str(caught.value), (path, value, str(caught.value))
