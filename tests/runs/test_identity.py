from hypothesis import given
from hypothesis import strategies as st

from waterline.runs import identity, read_settings
from waterline.runs.identity import leaves


def config(allocator="Level", **allocation):
    return {
        "seed": 0,
        "paths": {"results": "results"},
        "trainer": {"devices": 1},
        "allocation": {"_target_": f"runs.pieces.{allocator}", "n0": 16, "n_max": 64, **allocation},
        "training": {"lr": 2e-4, "steps": 300},
    }


def test_only_what_is_read_remains():
    assert read_settings(config("Uniform", u0=0.1)) == {
        "allocation": {"_target_": "runs.pieces.Uniform", "n0": 16},
        "training": {"lr": 2e-4, "steps": 300},
    }
    assert read_settings(config())["allocation"]["n_max"] == 64


def test_a_uniform_run_at_two_bounds_is_one_run_and_a_waterline_run_is_two():
    assert identity(config("Uniform", n_max=32)) == identity(config("Uniform", n_max=64))
    assert identity(config("Level", n_max=32)) != identity(config("Level", n_max=64))


def test_what_does_not_change_the_numbers_does_not_change_the_identity():
    base = identity(config())
    other = config() | {"seed": 7, "paths": {"results": "elsewhere"}, "logger": {"name": "wandb"}}
    other["trainer"] = {"devices": 8, "accelerator": "gpu"}
    other["training"] = {"lr": 2e-4, "steps": 300, "checkpoint_every": 5}
    assert identity(dict(reversed(other.items()))) == base
    assert identity(config() | {"training": {"lr": 2e-4, "steps": 300.0}}) == base
    assert identity(config() | {"training": {"lr": 3e-4, "steps": 300}}) != base


def test_a_piece_inside_a_piece_keeps_its_own_keys():
    inner = {"_target_": "runs.pieces.Level", "n_max": 8, "unread": 1}
    outer = {"_target_": "runs.pieces.Loss", "normalisation": "a", "clip": inner, "unread": [inner]}
    kept = {"_target_": "runs.pieces.Level", "n_max": 8}
    assert read_settings({"losses": outer})["losses"] == {
        "_target_": "runs.pieces.Loss",
        "normalisation": "a",
        "clip": kept,
    }
    assert read_settings({"many": [outer]})["many"][0]["clip"] == kept


def test_the_identity_of_today_is_that_of_tomorrow():
    # A literal: a changed hash would orphan the runs that people have.
    settings = {"a": {"b": 1.0, "c": [None, True, "x", 0.5, float("inf")]}}
    assert identity(settings) == "53cf90ae6040"


scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=3)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.text(min_size=1, max_size=3), trees, max_size=3))
def test_reading_twice_reads_the_same(tree):
    once = read_settings(tree)
    assert read_settings(once) == once
    assert identity(once) == identity(tree)


def test_leaves_are_named_by_their_path():
    assert leaves({"a": {"b": {"c": 1}, "d": []}, "e": {}}) == {"a.b.c": 1, "a.d": [], "e": {}}
