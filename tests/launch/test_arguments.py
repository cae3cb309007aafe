"""What a user types is read as it was meant, or refused in a sentence."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from training.tiny import CONF
from waterline.launch.arguments import readable
from waterline.runs import BadInput

METHODS = "ce,dars_hw,dr_grpo,grpo,maxrl,pkpo,reinforce,rloo,sera,sera_pilot"
ODD = (
    "~/res",
    "a (1)/ü=x",
    "out/user=me",
    "a#b",
    "größe b",
    "a[1]",
    "it's",
    "a\\",
    "${x}:$HOME;{b}",
)


@pytest.mark.parametrize(
    "key", ["paths.results", "results", "run", "root", "base.path", "task.path"]
)
@pytest.mark.parametrize("path", ODD)
def test_a_path_may_have_any_letters(key, path):
    (argument,) = readable([f"{key}={path}"], CONF)
    read = OverridesParser.create().parse_override(argument)
    assert (read.key_or_group, read.value()) == (key, path)


@pytest.mark.parametrize(
    "argument",
    ["seed=1", "paths.results='a, (b)'", "+new=1", "++x=[1,2]", "~logger", "run=${oc.env:HOME}/x",
     "losses@other=seqnorm", "overrides=[\"a=1\"]", "task.path=", "hydra/launcher=local"],
)  # fmt: skip
def test_hydras_own_syntax_stays(argument):
    assert readable([argument, "--cfg", "job"], CONF) == [argument, "--cfg", "job"]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("method=glob(*)", f"method={METHODS}"),
        ("method=glob([s*,m*],exclude=*pilot)", "method=maxrl,sera"),
        ("experiment=glob(maze/*)", "experiment=maze/demo,maze/laptop,maze/paper"),
        ("method=choice(sera,maxrl)", "method=choice(sera,maxrl)"),
        ("seed=range(0,3)", "seed=range(0,3)"),
        ("seed=0,1", "seed=0,1"),
    ],
)
def test_a_sweep_is_what_hydra_takes(given, read):
    for flag in ("-m", "--multirun"):
        assert readable([given, flag, "a=1"], CONF) == [flag, read, "a=1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["seed=0,1"], r"seed=0,1 holds several values: add -m .*seed=\[0,1\].*seed='0,1'"),
        (["method=sera,maxrl"], "add -m for a run of each\\.$"),
        (["allocation.n0=8,16"], "add -m"),
        (["seed=range(3)"], "add -m for a run of each\\.$"),
        (["seed=choice(0,1)"], "add -m"),
        (["method=glob(*)"], "add -m for a run of each\\.$"),
        (["-m", "method=glob(zz*)"], "fits none of ce, .*sera"),
        (["-m", "seed=glob(*)"], "fits none of no choices"),
        (["-m", "seed=range(3,3)"], "holds no value"),
        (["-m", "training.lr=interval(0,1)"], "has no end"),
        (["=3"], "has no name of a setting"),
        (["training.steps=a=b"], "cannot be read"),
        (["paths.results='a"], "cannot be read"),
        (["-m", "seed=0,1)"], "cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments, said):
    with pytest.raises(BadInput, match=said):
        readable(arguments, CONF)
