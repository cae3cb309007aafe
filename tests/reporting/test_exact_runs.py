"""Runs whose success probability is known: readers, scores, tables."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest
import yaml
from rich.console import Console

from reporting.image_runs import probabilities, write_run
from waterline.evaluation import exact_pass_at_k, questions_interval, runs_interval
from waterline.reporting import load_runs, pass_at_k_table, print_evaluations

P = np.array([0.0, 0.25, 0.5, 1.0])
METHODS = ("ce", "maxrl", "sera")


def runs_of(tmp_path):
    return load_runs(tmp_path, "imagenet-laptop")


def table2(tmp_path, ks=(1, 2), **options):
    return pass_at_k_table(
        runs_of(tmp_path), ks, methods=METHODS, reference="ce", base=False, **options
    )


def labels(table):
    return [row.label for row in table.rows]


def test_probabilities_are_read_by_split_and_step(tmp_path):
    write_run(tmp_path, "sera", p=P)
    (run,) = runs_of(tmp_path)
    assert run.exact
    assert (run.normalisation, run.n0, run.p_hat) == ("", 16, "")
    assert run.steps("dev") == [0, 30, 60]
    assert run.last_step("test") == 60
    assert list(run.answers("test").p) == list(P)
    assert list(run.answers("dev", 0).p) == pytest.approx(0.1 * P)
    assert run.answers("dev", 7).empty
    assert run.counts.empty


@pytest.mark.parametrize(
    ("method", "estimate", "n0", "p_hat"),
    [("ce", "", None, ""), ("maxrl", "", 16, ""), ("sera", "pilot", 16, "pilot"),
     ("sera", "history", 16, "history")],
)  # fmt: skip
def test_the_kind_of_a_run_comes_from_its_pieces(tmp_path, method, estimate, n0, p_hat):
    write_run(tmp_path, method, estimate=estimate)
    (run,) = runs_of(tmp_path)
    assert (run.n0, run.p_hat) == (n0, p_hat)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: pd.concat([t, t]), "two rows for one step, split, prompt: evaluate"),
        (lambda t: t.assign(p=t.p + 1), r"rows with not \(p >= 0 and p <= 1\)"),
        (lambda t: t.assign(p=np.nan), r"rows with not \(p >= 0 and p <= 1\)"),
        (lambda t: t.drop(columns="top1"), "no column top1: evaluate this run again"),
    ],
)
def test_broken_probabilities_are_refused(tmp_path, change, words):
    file = write_run(tmp_path, "sera").eval / "probabilities.parquet"
    change(pd.read_parquet(file)).to_parquet(file)
    (run,) = runs_of(tmp_path)
    with pytest.raises(ValueError, match=words):
        _ = run.probabilities


def test_table2_has_ce_and_then_each_budget(tmp_path):
    for n0 in (64, 16):
        write_run(tmp_path, "sera", n0=n0)
        write_run(tmp_path, "maxrl", n0=n0)
    write_run(tmp_path, "ce")
    write_run(tmp_path, "sera", estimate="history")
    found = table2(tmp_path)
    assert labels(found) == [
        "Direct CE",
        "MaxRL, N₀ = 16",
        "SERA, N₀ = 16",
        "MaxRL, N₀ = 64",
        "SERA, N₀ = 64",
        "SERA, N₀ = 16, history",
    ]
    assert not any("Token-mean" in text for text in (*labels(found), *found.notes))
    assert not any("base model" in note.lower() for note in found.notes)
    assert "exact success probability" in found.notes[0]
    assert "unbiased" not in found.notes[0]


def test_values_and_intervals_are_those_of_the_exact_scores(tmp_path):
    p = np.random.default_rng(0).uniform(0, 1, (3, 40))
    for seed in range(3):
        write_run(tmp_path, "maxrl", seed, p=p[seed])
    found = table2(tmp_path, ks=(1, 1024))
    for value, k in zip(found.values[0], (1, 1024), strict=True):
        scores = 1 - (1 - p) ** k
        assert value.value == pytest.approx(100 * scores.mean())
        mean, low, high = questions_interval(exact_pass_at_k(p, k).mean(axis=0))
        assert value.units == pytest.approx((100 * low, 100 * high))
        mean, low, high = runs_interval(exact_pass_at_k(p, k), shares=True)
        assert (value.value, *value.runs) == pytest.approx((100 * mean, 100 * low, 100 * high))


def test_differences_are_from_maxrl_at_equal_budget_and_from_ce(tmp_path):
    for seed in range(3):
        write_run(tmp_path, "ce", seed, p=[0.5] * 4)
        for n0, gain in ((16, 0.0), (64, 0.125)):
            write_run(tmp_path, "maxrl", seed, n0=n0, p=[0.125 + gain] * 4)
            write_run(tmp_path, "sera", seed, n0=n0, p=[0.25 + gain] * 4)
    found = table2(tmp_path, ks=(1, 2))
    deltas = {d.label: [v.value for v in d.values] for d in found.deltas if d}
    assert deltas == {
        "SERA − MaxRL, N₀ = 16": pytest.approx([12.5, 100 * (0.875**2 - 0.75**2)]),
        "SERA − MaxRL, N₀ = 64": pytest.approx([12.5, 100 * (0.75**2 - 0.625**2)]),
    }
    gaps = {gap.label: gap.values[0].value for gap in found.gaps if gap}
    assert gaps == {
        "MaxRL − Direct CE, N₀ = 16": pytest.approx(-37.5),
        "SERA − Direct CE, N₀ = 16": pytest.approx(-25),
        "MaxRL − Direct CE, N₀ = 64": pytest.approx(-25),
        "SERA − Direct CE, N₀ = 64": pytest.approx(-12.5),
    }
    assert not any("No difference" in note for note in found.notes)
    tidy = found.tidy()
    line = tidy[(tidy.method == "sera") & (tidy.n0 == 16) & (tidy.k == 1)].iloc[0]
    assert (line.estimator, line.baseline, line.reference) == ("exact", "maxrl", "ce")
    assert (line.delta, line.gap) == pytest.approx((12.5, -25))
    assert line.gap_excludes_zero
    assert (line.questions, line.settings) == (4, "")
    assert tidy[tidy.method == "ce"].n0.isna().all()


def test_budgets_of_sampling_and_of_cross_entropy(tmp_path):
    for method in METHODS:
        write_run(tmp_path, method)
    found = table2(tmp_path)
    spent = dict(zip(labels(found), found.budgets, strict=True))
    assert np.isnan(spent["Direct CE"].rollouts)
    assert spent["Direct CE"].seconds == 120
    assert spent["SERA, N₀ = 16"].rollouts == 4 * 16 * 60
    assert spent["SERA, N₀ = 16"].waterline == 1


def test_missing_rows_are_named_by_budget(tmp_path):
    write_run(tmp_path, "maxrl", n0=16)
    write_run(tmp_path, "sera", n0=64)
    notes = table2(tmp_path).notes
    assert "Direct CE; SERA, N₀ = 16; MaxRL, N₀ = 64: seed 0 missing." in notes
    assert "MaxRL, N₀ = 16; SERA, N₀ = 64: seed 0 done." in notes
    assert (
        "No difference for SERA, N₀ = 64: there is no MaxRL with the same rollouts per prompt and "
        "step." in notes
    )
    assert "No difference for SERA, N₀ = 64: there is no Direct CE with the same step." in notes


def test_a_run_that_is_not_yet_evaluated_belongs_to_its_budget(tmp_path):
    write_run(tmp_path, "maxrl")
    folder = write_run(tmp_path, "sera")
    folder.set_state("running")
    (folder.eval / "probabilities.parquet").unlink()
    notes = table2(tmp_path).notes
    assert "SERA, N₀ = 16: seed 0 running." in notes


def test_pieces_that_no_longer_exist_are_shown_as_unknown(tmp_path):
    write_run(tmp_path, "maxrl")
    for name, gone in (("x", "allocation"), ("y", "success")):
        folder = write_run(tmp_path, "sera", estimate="history", settings=name)
        config = yaml.safe_load(folder.config.read_text())
        config[gone]["_target_"] = f"waterline.{gone}.LongGone"
        folder.config.write_text(yaml.safe_dump(config))
    assert labels(table2(tmp_path)) == [
        "MaxRL, N₀ = 16",
        "SERA, N₀ = 16, unknown estimate (x)",
        "SERA, N₀ = 16, unknown estimate (y)",
    ]


def test_two_settings_of_one_budget_are_told_apart(tmp_path):
    write_run(tmp_path, "sera", settings="n0-16_u0-0.05")
    write_run(tmp_path, "sera", settings="n0-16_u0-0.1")
    assert labels(table2(tmp_path)) == [
        "SERA, N₀ = 16 (n0-16_u0-0.05)",
        "SERA, N₀ = 16 (n0-16_u0-0.1)",
    ]


def test_one_runs_evaluations_are_printed(tmp_path):
    frame = pd.concat([probabilities(0, "dev", 0.1 * P), probabilities(60, "dev", P)])
    text = StringIO()
    print_evaluations(Console(file=text, width=120), frame, "dev", [1, 1024])
    lines = text.getvalue().splitlines()
    assert lines[0].split() == ["Step", "Prompts", "Top-1", "Pass@1", "Pass@1024"]
    assert lines[1].split()[:4] == ["0", "4", "0.0", "4.4"]
    assert lines[2].split()[:4] == ["60", "4", "50.0", "43.8"]
    assert "exact Pass@K" in lines[3]
