"""Every setting of every configuration is refused a wrong value, in one sentence that names it."""

import copy
import math

import pytest
import torch

from test_configs import EXPERIMENTS, compose
from waterline.runs import BadInput
from waterline.runs.identity import leaves
from waterline.runs.settings import TARGET, check_settings
from waterline.training.assemble import build_policy, check_config
from waterline.training.checks import check_device
from waterline.training.settings import SECTIONS

# What may be null although it has a value in some configuration.
NULLABLE = {
    "supervised.until",
    "base.path", "final.gradients.checkpoints", "final.gradients.n0", "final.split",
    "logger.entity", "losses.clip_high", "losses.clip_low", "losses.dual_clip", "losses.kl",
    "losses.length_cap",
    "success.probability", "supervised", "supervised.optimizer.grad_clip", "task.path", "task.root",
    "trainer.threads", "training.optimizer.grad_clip", "training.optimizer.horizon",
    "engine.max_model_len", "final.rewards", "task.stop", "task.train_rows", "task.dev_rows",
    "task.test_rows",
}  # fmt: skip
NEGATIVE = {"task.seed", "losses.entropy_coef", "losses.kl_coef"}  # in one loss or another
TEXT = {"task.path", "task.root", "base.path", "logger.entity"}  # any text, or null
# Lists of any names: what there is, the task knows.
NAMES = {"task.train", "task.dev", "task.test", "task.stop"}
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
        yield from (5, True, [value])
        yield from () if path == "task.joint" else ("",)
    elif isinstance(value, list):
        yield from (3, "x", [True], [-1], [math.nan])
        yield from () if path in NAMES else (["x"],)
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
            assert path in message, (path, value, message)
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
            if value == {} and path == "final.rewards":  # nothing differs from the training's
                continue
            with pytest.raises(BadInput) as caught:
                check_config(changed(config, path, value))
            assert path.split(".")[-1] in str(caught.value), (path, value, str(caught.value))


def without(config, path):
    found = copy.deepcopy(config)
    node, *keys = found, *path.split(".")
    for key in keys[:-1]:
        node = node[key]
    del node[keys[-1]]
    return found


@pytest.mark.parametrize(
    "path",
    ["training.batch", "training.update", "training.log_every", "supervised.steps", "task.train",
     "policy.model", "evaluation.n", "evaluation.split", "trainer.workers", "logger", "seed",
     "training.optimizer.lr", "allocation.n0", "final.gradients.n0"],
)  # fmt: skip
def test_a_setting_that_is_missing_is_named(path):
    with pytest.raises(BadInput, match=f"The setting {path} is missing"):
        check_config(without(composed("maze/laptop", "sera"), path))


@pytest.mark.parametrize(
    "path",
    ["training.seed", "training.policy", "training.workers", "engine.policy", "supervised.task",
     "advantages.rewards", "advantages.group"],
)  # fmt: skip
def test_what_the_program_hands_in_is_no_setting(path):
    with pytest.raises(BadInput, match=f"Nothing reads the setting {path}: "):
        check_config(changed(composed("maze/laptop", "sera"), path, 3))


@pytest.mark.parametrize(
    ("method", "settings", "said"),
    [
        ("sera", {"evaluation.n": 4, "evaluation.ks": [8, 16]},
         r"evaluation.ks=\[8, 16\]: Pass@8 needs more than evaluation.n=4"),
        ("sera", {"training.optimizer.horizon": 5, "training.optimizer.warmup_steps": 5},
         "training.optimizer.horizon=5: must be above warmup_steps=5"),
        ("sera", {"allocation.n_min": 70}, "allocation.n_max=64: must be at least 70"),
        ("sera", {"allocation.n0": 65}, "allocation: a budget of"),
        ("pkpo", {"advantages.k": 17}, "advantages.k=17 is above allocation.n0=16"),
        ("pkpo", {"advantages.k": 10**12}, "advantages.k=10{12} is above"),
        ("sera", {"success.alpha": 0}, "success.alpha=0: must be a number above 0"),
        ("sera", {"losses.clip_low": 1}, "losses.clip_low=1: must be"),
        ("sera", {"losses.kl_coef": 0.1}, "losses.kl_coef=0.1 needs a KL estimator"),
        ("grpo", {"advantages.eps": -1}, "advantages.eps=-1: must be"),
        ("sera", {"trainer.threads": 10**6}, "trainer.threads=1000000: must be"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_each_other_are_named(method, settings, said):
    config = composed("maze/laptop", method)
    for path, value in settings.items():
        config = changed(config, path, value)
    with pytest.raises(BadInput, match=said) as caught:
        check_config(config)
    assert "\n" not in str(caught.value)


def test_devices_that_are_not_there_are_refused(monkeypatch):
    trainer = composed("maze/laptop", "sera")["trainer"]
    check_device(trainer | {"devices": 4})
    with pytest.raises(BadInput, match="devices=1000 is above the"):
        check_device(trainer | {"devices": 1000})
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    check_device(trainer | {"accelerator": "gpu", "devices": 2})
    with pytest.raises(BadInput, match="devices=3 is above the 2 that this machine can run"):
        check_device(trainer | {"accelerator": "cuda", "devices": 3})
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(BadInput, match="asks for a GPU and none is found"):
        check_device(trainer | {"accelerator": "gpu"})


def too_large():
    raise RuntimeError("can't allocate memory: you tried to allocate 128000000000 bytes.\nframe #0")


def test_a_network_that_does_not_fit_the_memory_is_a_sentence():
    with pytest.raises(BadInput, match=r"cannot be made \(can't allocate.*lower its") as caught:
        build_policy({"policy": {"_target_": f"{__name__}.too_large"}})
    assert "\n" not in str(caught.value)
