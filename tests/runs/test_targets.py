import pytest

from waterline.runs import BadInput, build
from waterline.runs.targets import accepted_keys, locate


def piece(name, **settings):
    return {"_target_": f"runs.pieces.{name}", **settings}


def test_a_piece_gets_the_keys_that_it_accepts_and_no_others():
    level = build(piece("Level", n_max=32, n0=16, another="ignored"))
    assert (level.n_max, level.u0) == (32, 0.05)
    assert type(build(piece("Uniform", n_max=32))).__name__ == "Uniform"
    assert build(piece("Anything", a=1, b=2)).options == {"a": 1, "b": 2}


def test_objects_are_handed_in_where_they_are_accepted_and_win():
    clip = object()
    loss = build(piece("Loss", normalisation="token_mean", clip=3), clip=clip, policy=object())
    assert loss.clip is clip
    assert build(piece("Anything"), policy=clip).options == {"policy": clip}


def test_nodes_below_are_built_first():
    loss = build(piece("Loss", normalisation="a", clip=piece("Level", n_max=8, n0=1)))
    assert loss.clip.n_max == 8
    many = build(piece("Anything", levels=[piece("Level"), 2], plain={"x": piece("Uniform")}))
    assert type(many.options["levels"][0]).__name__ == "Level"
    assert type(many.options["plain"]["x"]).__name__ == "Uniform"


def test_what_is_ignored_is_not_built():
    build(piece("Uniform", critic={"_target_": "not.installed.Critic"}))
    build(piece("Loss", normalisation="a", clip={"_target_": "not.installed.Clip"}), clip=None)


def test_a_function_becomes_a_partial():
    advantage = build(piece("advantage", eps=0.5, n_max=3))
    assert advantage([1.0], [0]) == ([1.0], [0], 0.5)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"n_max": 3}, "has none"),
        (piece("Level", n_max=1), "n_max is 1: raise it to 2 or more"),
        (piece("Levl"), r"'Levl'\); check its spelling"),
        ({"_target_": "runs.piecs.Level"}, "cannot be imported"),
        ({"_target_": "Level"}, "no dotted name"),
        (piece("NOT_CALLABLE"), "neither a class nor a function"),
        (piece("Loss", clip=1), "missing a required argument: 'normalisation'"),
    ],
)
def test_bad_nodes_are_one_sentence(node, message):
    with pytest.raises(BadInput, match=message) as error:
        build(node)
    assert "\n" not in str(error.value)


def test_a_type_error_inside_a_constructor_is_a_bug_and_stays_one():
    with pytest.raises(TypeError, match="a bug inside"):
        build(piece("Broken"))


def test_accepted_keys_leave_out_what_no_keyword_reaches():
    assert accepted_keys(locate("runs.pieces.Positional")) == {"second"}
    assert accepted_keys(locate("runs.pieces.Anything")) is None
