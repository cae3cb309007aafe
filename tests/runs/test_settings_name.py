import copy
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterline.runs import identity, settings_name

DEFAULT = {
    "seed": 0,
    "allocation": {"_target_": "runs.pieces.Level", "n0": 16, "n_max": 64, "u0": 0.05},
    "losses": {"_target_": "runs.pieces.Loss", "normalisation": "token_mean", "clip": None},
    "training": {"lr": 2e-4, "steps": 300, "step_on_no_signal": False},
    "critic": {"lr": 1e-3, "layers": [64, 64]},
}


def changed(path, value):
    config = copy.deepcopy(DEFAULT)
    node = config
    *above, last = path.split(".")
    for key in above:
        node = node[key]
    node[last] = value
    return config


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        ("seed", 5, "n0-16_nmax-64"),
        ("allocation.n0", 8, "n0-8_nmax-64"),
        ("allocation.n_max", 32, "n0-16_nmax-32"),
        ("allocation.u0", 0.2, "n0-16_nmax-64_u0-0.2"),
        ("allocation.unread", 1, "n0-16_nmax-64"),
        ("losses.normalisation", "seq_norm", "n0-16_nmax-64_normalisation-seq-norm"),
        ("training.lr", 1e-5, "n0-16_nmax-64_training.lr-1e-05"),
        ("critic.lr", 2, "n0-16_nmax-64_critic.lr-2"),
        ("training.step_on_no_signal", True, "n0-16_nmax-64_steponnosignal-true"),
    ],
)
def test_the_name_says_what_deviates(path, value, name):
    assert settings_name(changed(path, value), DEFAULT) == name


def test_a_uniform_method_has_no_bound_in_its_name():
    uniform = changed("allocation", {"_target_": "runs.pieces.Uniform", "n0": 16, "n_max": 64})
    assert settings_name(uniform, uniform) == "n0-16"


def test_without_allocation_there_is_still_a_name():
    base = {"training": {"lr": 1}}
    assert settings_name(base, base) == "default"
    assert settings_name({"training": {"lr": 2}}, base) == "lr-2"
    assert re.fullmatch("[0-9a-f]{8}", settings_name({"training": {"lr": "a b"}}, base))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("losses.normalisation", "x" * 81),
        ("losses.normalisation", "token-mean"),  # would read like token_mean
        ("losses.normalisation", "a b"),
        ("losses.clip", "0.2"),  # would read like the number
        ("losses.clip", "true"),
        ("losses.clip", ""),
        ("critic.layers", [64]),
        ("losses._target_", "runs.pieces.Anything"),
        ("critic", {"lr": 1e-3}),
    ],
)
def test_what_has_no_short_name_gets_a_hash(path, value):
    config = changed(path, value)
    assert re.fullmatch(r"n0-16_nmax-64_[0-9a-f]{8}", settings_name(config, DEFAULT))


def test_a_hash_does_not_know_settings_that_follow_the_seed():
    def name(seed):
        with_model = {"policy": {"seed": seed}, "seed": seed}
        config = changed("losses._target_", "runs.pieces.Anything") | with_model
        return settings_name(config, DEFAULT | with_model)

    assert name(0) == name(1) != settings_name(DEFAULT, DEFAULT)


values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=100)
    | st.sampled_from(["token_mean", "token-mean", "1e-3", "none", "a.b", "Ünï", "=,", "0_n0-1"])
    | st.lists(st.integers(0, 3), max_size=2)
)
configs = st.builds(
    lambda n0, n_max, u0, clip, lr, layers: {
        "allocation": {"_target_": "runs.pieces.Level", "n0": n0, "n_max": n_max, "u0": u0},
        "losses": {"_target_": "runs.pieces.Loss", "normalisation": "token_mean", "clip": clip},
        "training": {"lr": lr, "steps": 300, "step_on_no_signal": False},
        "critic": {"lr": 1e-3, "layers": layers},
    },
    *[st.just(16) | values, st.just(64) | values, *[st.just(0.05) | values] * 4],
)


@given(configs, configs)
def test_names_are_safe_short_and_unambiguous(first, second):
    name, other = settings_name(first, DEFAULT), settings_name(second, DEFAULT)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,80}", name)
    if identity(first) == identity(second):
        assert name == other
    else:
        assert name != other


@given(configs, st.integers(0, 100))
def test_the_seed_and_the_order_of_keys_do_not_matter(config, seed):
    shuffled = {**dict(reversed(config.items())), "seed": seed}
    assert settings_name(shuffled, DEFAULT) == settings_name(config, DEFAULT)
