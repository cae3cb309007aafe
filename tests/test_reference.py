"""A few steps of each task and method against the stored numbers of ``tests/reference``.

Integers must be equal: counts, allocations, successes, tokens. Floats must agree to 1e-5, for
processors add in different orders. The runs are so short that rounding is very unlikely to turn a
sampled token into another one. If it does on a new processor or with a new torch (integers differ
in one case, though the code did not change), run ``tests/reference/compare.py`` there against the
commit before. If all is the same, write the numbers again with ``python tests/reference/write.py``.
A change that is meant to move numbers is written in the same way, and its commit says why.
"""

import copy
import json
import math

import pandas as pd
import pytest
import torch

from reference.cases import JOBS
from reference.compare import chosen
from reference.records import compare_records, differences, record, same_bits
from reference.write import CASES, VALUES, run_case, summary
from training.tiny import compose


def close(a, b):
    if isinstance(a, float) and isinstance(b, float) and not math.isnan(a):
        # A loss is a sum of both signs: its rounding is that of the terms.
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6)
    return same_bits(a, b)


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_are_those_that_are_stored(case, tmp_path):
    stored = json.loads(VALUES.read_text())
    assert stored.keys() == CASES.keys()
    found = summary(run_case(case, tmp_path))
    assert list(differences(stored[case], found, same=close)) == []


@pytest.fixture(scope="module")
def image_run(tmp_path_factory):
    return record(run_case("images/sera-beta", tmp_path_factory.mktemp("reference")))


def altered(value, path, change):
    """A copy of a record with one value changed: a new one, or a function of the old one."""
    other = copy.deepcopy(value)
    *path, last = path
    at = other
    for key in path:
        if isinstance(at, pd.DataFrame):
            at, last = at.loc, (last, key)
        else:
            at = at[key]
    at[last] = change(at[last]) if callable(change) else change
    return other


LAST = ("checkpoints", "last.pt")
CHANGES = {
    "metrics[2]/reward/mean": (("metrics", 2, "reward/mean"), lambda x: math.nextafter(x, 1)),
    "metrics[1]/epoch": (("metrics", 1, "epoch"), float),
    "metrics[1]/new": (("metrics", 1, "new"), 1.0),
    "metrics: 5 and 4 items": (("metrics",), lambda rows: rows[:-1]),
    "metrics[0]/step": (("metrics",), lambda rows: rows[::-1]),
    "allocation/n[3]": (("allocation", "n", 3), lambda n: n + 1),
    "allocation/prompt[0]": (("allocation",), lambda frame: frame.iloc[[1, 0, *range(2, 14)]]),
    "eval/probabilities.parquet/p[4]": (
        ("eval/probabilities.parquet", "p", 4), lambda p: math.nextafter(p, 1),
    ),
    "step-2.pt: only in the first": (
        ("checkpoints",), lambda files: {k: v for k, v in files.items() if k != "step-2.pt"},
    ),
    "final.pt/policy/": (
        ("checkpoints", "final.pt", "policy"),
        lambda weights: {name: w * (1 + 2**-23) for name, w in weights.items()},
    ),
    "last.pt/success/pending_trials[0]": ((*LAST, "success", "pending_trials", 0), 99),
    "last.pt/optimizer/param_groups[0]/lr": ((*LAST, "optimizer", "param_groups", 0, "lr"), 0.1),
    "last.pt/totals/rollouts": ((*LAST, "totals", "rollouts"), 1),
    "last.pt/done": ((*LAST, "done"), 3),
}  # fmt: skip


@pytest.mark.parametrize("where", CHANGES)
def test_the_comparison_finds_a_change_of_one_number(where, image_run):
    found, _ = compare_records(image_run, altered(image_run, *CHANGES[where]))
    assert found
    assert found[0].startswith(where)


def test_keys_of_a_checkpoint_may_change_and_are_noted(image_run):
    other = copy.deepcopy(image_run)
    assert compare_records(image_run, other) == ([], [])
    last = other["checkpoints"]["last.pt"]
    last["pieces"] = {"success": last.pop("success")}
    last["totals"]["new"] = 1
    last["policy"] = {f"net.{name}": w for name, w in last["policy"].items()}
    found, notes = compare_records(image_run, other)
    assert found == []
    assert len(notes) == 5


def test_bits_are_compared():
    zero, nan = torch.tensor([0.0]), torch.tensor([math.nan])
    assert list(differences({"w": zero}, {"w": -zero})) == ["w: tensors differ by up to 0"]
    assert list(differences({"w": nan}, {"w": nan.clone()})) == []
    assert list(differences([0.0, math.nan, 1], [-0.0, math.nan, True])) == [
        "[0]: 0.0 and -0.0",
        "[2]: 1 and True",
    ]


@pytest.mark.slow
def test_every_job_names_settings_that_exist():
    for job in JOBS:
        if job.script == "train.py":
            read = [a.replace("{maze/base}", "base") for a in job.arguments]
            values = dict(a.split("=", 1) for a in read)
            pick = {key: values[key] for key in ("experiment", "method")}
            compose(*(a for a in read if a.split("=")[0] not in pick), **pick)


def test_what_a_job_reads_is_run_before_it():
    for i, job in enumerate(JOBS):
        assert job.needs() <= {earlier.name for earlier in JOBS[:i]}


def test_what_a_job_reads_is_run_too():
    shown, run = chosen(["maze/evaluate"])
    assert [job.name for job in shown] == ["maze/evaluate"]
    assert [job.name for job in run] == ["maze/base", "maze/sera", "maze/evaluate"]
    with pytest.raises(SystemExit, match="No job is called maize"):
        chosen(["maize"])
