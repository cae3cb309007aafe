import pytest

from waterline.runs.metrics import METRICS, glossary, metric

STEP = "step epoch rollouts/total rollouts/tokens rollouts/total_tokens reward/mean"
GROUPS = "groups/mixed_of_active groups/mixed_of_batch groups/mixed_per_second"
ALLOCATION = (
    "active_fraction waterline count_min count_median count_max kappa_min kappa_mean kappa_spread"
)
UPDATE = (
    "policy/entropy response/length grad/norm grad/skipped engine/logp_gap verdict/correct "
    "verdict/wrong verdict/unparseable verdict/timeout verdict/error verdict/capped"
)
LOSS = "loss/value lr"
TIME = "time/allocate time/sample time/verify time/update time/step"
IMAGES = "grad/cosine_ce success/mae success/pearson eval/top1 data/unreadable"
DESIGN = [
    *(f"{STEP} {GROUPS} {UPDATE} {LOSS} {TIME} {IMAGES}").split(),
    *(f"allocation/{name}" for name in ALLOCATION.split()),
    "eval/pass@{K}",
]


def test_every_metric_of_the_design_is_documented():
    assert set(DESIGN) <= set(METRICS)


def test_what_only_image_runs_write_is_marked():
    assert {name for name, found in METRICS.items() if found.tasks == "images"} == {*IMAGES.split()}


def test_names_are_unique_and_every_row_is_filled():
    for name, found in METRICS.items():
        assert found.name == name
        assert found.label
        assert found.unit
        assert found.meaning


def test_any_k_is_the_same_metric_and_axes_carry_units():
    assert metric("eval/pass@64") is METRICS["eval/pass@{K}"]
    assert metric("policy/entropy").axis == "Token entropy (nats)"
    assert metric("reward/mean").axis == "Mean reward"


def test_an_undocumented_name_is_refused():
    with pytest.raises(ValueError, match="'eval/pass@x' is not documented"):
        metric("eval/pass@x")


def test_glossary_is_one_markdown_row_per_metric():
    lines = glossary().splitlines()
    assert len(lines) == len(METRICS) + 2
    # A bar inside a cell would open another one.
    assert {line.count("|") for line in lines} == {5}
