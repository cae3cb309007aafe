from math import comb

import numpy as np
import pandas as pd
import pytest

from waterline.reporting import load_runs, pass_at_k_table

P = (0.0, 0.25, 0.5, 1.0)  # of 16 responses 0, 4, 8 and 16 are correct


def table(tmp_path, ks=(1, 4), **options):
    return pass_at_k_table(load_runs(tmp_path / "results", "maze-laptop"), ks, **options)


def by_hand(k, correct=(0, 4, 8, 16), n=16):
    return 100 * np.mean([1 - comb(n - c, k) / comb(n, k) for c in correct])


def labels(found):
    return [row.label for row in found.rows]


def test_values_of_both_estimators(make_run, tmp_path):
    make_run("maxrl")
    unbiased = table(tmp_path)
    assert labels(unbiased) == ["Base model", "Token-mean MaxRL"]
    assert [v.value for v in unbiased.values[1]] == pytest.approx([by_hand(1), by_hand(4)])
    bootstrap = table(tmp_path, estimator="bootstrap")
    drawn = 100 * np.mean([1 - (1 - p) ** 4 for p in P])
    assert [v.value for v in bootstrap.values[1]] == pytest.approx([by_hand(1), drawn])
    with pytest.raises(ValueError, match="no estimator 'exact'"):
        table(tmp_path, estimator="exact")


def test_questions_interval_is_that_of_the_mean_over_questions(make_run, tmp_path):
    p = np.linspace(0, 1, 401)
    make_run("maxrl", p=p, n=100, base=None)
    value = table(tmp_path, ks=(1,)).values[0][0]
    half = 1.96 * np.std(np.rint(100 * p)) / np.sqrt(401)
    assert value.units == pytest.approx((50 - half, 50 + half), abs=0.15)
    assert np.isnan(value.runs).all()  # one seed says nothing of other seeds


def test_runs_interval_covers_the_seeds(make_run, tmp_path):
    for seed, p in enumerate((0.25, 0.5, 0.75)):
        make_run("maxrl", seed, p=[p] * 5, base=None)
    value = table(tmp_path, ks=(1,)).values[0][0]
    assert value.value == pytest.approx(50)
    assert value.units == pytest.approx((50, 50))
    # t(2) = 4.30 standard errors of the seeds, 0.621 around 0.5, in Wilson's form.
    half = 4.302653 * 0.25 / np.sqrt(3)
    ends = [half / np.sqrt(1 + 4 * half**2) * sign for sign in (-1, 1)]
    assert value.runs == pytest.approx([100 * (0.5 + end) for end in ends], rel=1e-5)


def test_differences_are_paired_by_seed_and_question(make_run, tmp_path):
    questions = np.random.default_rng(0).uniform(0.1, 0.8, 50)
    for seed in range(3):
        make_run("maxrl", seed, p=questions + 0.05 * seed, n=1000)
        make_run("sera", seed, p=questions + 0.05 * seed + 0.02, n=1000)
    found = table(tmp_path, ks=(1,))
    row = labels(found).index("Token-mean SERA")
    delta = found.deltas[row].values[0]
    assert delta.value == pytest.approx(2)
    assert delta.runs == pytest.approx((2, 2), abs=0.1)
    assert delta.basis == "runs"
    assert delta.excludes_zero
    # Seeds and questions differ by far more than the methods do.
    low, high = found.values[row][0].runs
    assert high - low > 10
    assert not any("checkpoints only" in note for note in found.notes)


@pytest.mark.parametrize("seeds", [1, 2])
def test_few_seeds_speak_of_these_checkpoints_only(make_run, tmp_path, seeds):
    for seed in range(seeds):
        make_run("maxrl", seed)
        make_run("sera", seed)
    found = table(tmp_path)
    assert sum("about these checkpoints only" in note for note in found.notes) == 1
    assert found.deltas[2].values[0].basis == "questions"
    assert not found.deltas[2].values[0].excludes_zero


def test_rows_follow_the_expected_order_and_missing_ones_are_named(make_run, tmp_path):
    make_run("sera", normalisation="seqnorm", settings="n0-16_seqnorm")
    make_run("rloo")
    make_run("maxrl")
    make_run("maxrl", normalisation="seqnorm", settings="n0-16_seqnorm")
    expected = [("token-mean", "grpo"), ("token-mean", "maxrl"), ("seqnorm", "maxrl")]
    found = table(tmp_path, expected=expected)
    assert labels(found) == [
        "Base model",
        "Token-mean MaxRL",
        "Seqnorm MaxRL",
        "Token-mean RLOO",
        "Seqnorm SERA",
    ]
    assert "Token-mean GRPO: seed 0 missing." in found.notes
    assert "Token-mean MaxRL; Seqnorm MaxRL: seed 0 done." in found.notes
    assert [delta.other.label if delta else None for delta in found.deltas] == [
        None,
        None,
        None,
        "Token-mean MaxRL",
        "Seqnorm MaxRL",
    ]


def test_what_is_left_out_is_named(make_run, tmp_path):
    make_run("sera", 0)
    make_run("sera", 1, evaluated=False)
    make_run("grpo", 0, state="failed")
    found = table(tmp_path)
    assert found.rows[-1].answers.seeds == (0,)
    text = " ".join(found.notes)
    assert "not finished: grpo/n0-16/seed-0 (failed)." in text
    assert "not evaluated on test: Token-mean SERA, seed 1." in text
    assert "No difference for Token-mean SERA: there is no MaxRL" in text


def test_the_seeds_of_each_expected_row_are_done_running_failed_or_missing(make_run, tmp_path):
    for seed, state in enumerate(("done", "running", "failed")):
        make_run("sera", seed, state=state)
    for seed in (0, 1, 3):
        make_run("maxrl", seed)
    make_run("maxrl", 1, settings="n0-8", state="failed")  # another setting of it is done
    make_run("rloo", 0)
    expected = [("token-mean", name) for name in ("grpo", "maxrl", "sera")]
    found = table(tmp_path, expected=expected, ks=(1,))
    assert [note for note in found.notes if ": seeds " in note] == [
        "Token-mean GRPO: seeds 0, 1, 2, 3 missing.",
        "Token-mean MaxRL: seeds 0, 1, 3 done; 2 missing.",
        "Token-mean SERA: seeds 0 done; 1 running; 2 failed; 3 missing.",
    ]


def test_rows_in_the_same_state_share_a_line(make_run, tmp_path):
    for seed in range(2):
        make_run("maxrl", seed)
        make_run("sera", seed)
    expected = [("token-mean", "maxrl"), ("token-mean", "sera")]
    notes = table(tmp_path, expected=expected, ks=(1,)).notes
    assert "Token-mean MaxRL; Token-mean SERA: seeds 0, 1 done." in notes


def test_only_unfinished_runs_are_an_error_that_names_them(make_run, tmp_path):
    make_run("sera", 0, state="running")
    with pytest.raises(ValueError, match=r"seed-0 \(running\).*finish one"):
        table(tmp_path)


def test_uneven_responses_limit_k(make_run, tmp_path):
    make_run("maxrl", n=(8, 16, 16, 32))
    found = table(tmp_path, ks=(1, 8, 16))
    assert found.ks == (1, 8)
    assert "Not shown, above the 8 responses per question: K = 16." in found.notes
    second = 1 - comb(12, 8) / comb(16, 8)
    third = 1 - comb(8, 8) / comb(16, 8)
    assert found.values[1][1].value == pytest.approx(100 * (0 + second + third + 1) / 4)
    with pytest.raises(ValueError, match="ask for smaller K"):
        table(tmp_path, ks=(64,))


def test_a_half_done_evaluation_is_left_out_and_named(make_run, tmp_path):
    make_run("maxrl", 0)
    make_run("sera", 0)
    make_run("sera", 1, p=(0.0, 0.25))  # the first two of the four questions
    found = table(tmp_path)
    assert found.rows[-1].answers.seeds == (0,)
    assert "Left out, evaluation on test unfinished: Token-mean SERA, seed 1." in found.notes


def test_different_questions_cannot_be_compared(make_run, tmp_path):
    make_run("maxrl", 0)
    file = make_run("maxrl", 1) / "eval" / "counts.parquet"
    counts = pd.read_parquet(file)
    counts.assign(prompt=counts.prompt + 1).to_parquet(file)
    with pytest.raises(ValueError, match="different questions"):
        table(tmp_path)


def test_methods_without_a_shared_seed_get_no_difference(make_run, tmp_path):
    make_run("maxrl", 0)
    make_run("sera", 1)
    found = table(tmp_path)
    assert found.deltas == (None, None, None)
    assert "No difference for Token-mean SERA: it shares no seed" in " ".join(found.notes)


def test_settings_tell_rows_of_a_sweep_apart(make_run, tmp_path):
    make_run("sera", settings="n0-16_nmax-32")
    make_run("sera", settings="n0-16_nmax-64")
    make_run("maxrl")
    assert labels(table(tmp_path)) == [
        "Base model",
        "Token-mean MaxRL",
        "Token-mean SERA (n0-16_nmax-32)",
        "Token-mean SERA (n0-16_nmax-64)",
    ]


def test_budgets_and_their_flags(make_run, tmp_path):
    make_run("maxrl", waterline=0.0)
    make_run("sera", waterline=0.8)
    make_run("grpo", rollouts=768, waterline=0.0)
    found = table(tmp_path)
    text = " ".join(found.notes)
    assert "Token-mean SERA allocated by the waterline in 80% of its steps" in text
    assert "Token-mean GRPO used 1.50× the rollouts of Token-mean MaxRL." in text
    assert "MaxRL allocated" not in text
    spent = found.budgets[labels(found).index("Token-mean MaxRL")]
    assert (spent.rollouts, spent.tokens, spent.seconds) == (512 * 60, 512 * 60 * 20, 120)
    assert np.isnan(found.budgets[0].rollouts)


def test_base_folder_wins_over_step_zero(make_run, tmp_path):
    source = make_run("base", settings="x", base=(1.0, 1.0, 1.0, 1.0))
    folder = tmp_path / "results" / "maze-laptop" / "base" / "seed-0"
    source.rename(folder)
    make_run("sera")
    found = table(tmp_path)
    assert labels(found) == ["Base model", "Token-mean SERA"]
    assert found.values[0][0].value == pytest.approx(100)
    assert found.rows[0].step == 0


def test_no_base_evaluation_is_said(make_run, tmp_path):
    make_run("sera", base=None)
    assert "The base model is not evaluated on test." in table(tmp_path).notes


def test_tidy_has_one_line_per_row_and_k(make_run, tmp_path):
    for seed in range(3):
        make_run("maxrl", seed)
        make_run("sera", seed)
    tidy = table(tmp_path, ks=(1, 2, 4)).tidy()
    assert len(tidy) == 3 * 3
    line = tidy[(tidy.method == "sera") & (tidy.k == 4)].iloc[0]
    assert line.value == pytest.approx(by_hand(4))
    assert (line.baseline, line.delta, line.claim_basis) == ("maxrl", 0, "runs")
    assert (line.seeds, line.questions, line.responses) == ("0 1 2", 4, 16)
    assert tidy[tidy.method == "maxrl"].delta.isna().all()
