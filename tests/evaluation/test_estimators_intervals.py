import itertools

import numpy as np
import pytest
from scipy import stats

from waterline.evaluation import (
    paired_bootstrap,
    questions_interval,
    runs_interval,
    within_interval,
)
from waterline.evaluation.intervals import question_means, student_t


def test_means_of_resampled_questions_have_the_bootstrap_distribution():
    """All Q^Q resamples of three questions, and their shares among the draws."""
    scores = np.array([[0.0, 1.0, 5.0], [2.0, 2.0, 0.0]])
    means = question_means(scores, 60_000, np.random.default_rng(0))
    drawn, times = np.unique(np.round(means, 9), axis=0, return_counts=True)
    exact = {}
    for sample in itertools.product(range(3), repeat=3):
        key = tuple(np.round(scores[:, sample].mean(axis=1), 9))
        exact[key] = exact.get(key, 0) + 1 / 27
    assert {tuple(row) for row in drawn} == set(exact)
    for row, n in zip(drawn, times, strict=True):
        assert n / 60_000 == pytest.approx(exact[tuple(row)], abs=0.01)


def test_questions_interval_against_the_standard_error():
    rng = np.random.default_rng(1)
    scores = rng.random(400)
    estimate, low, high = questions_interval(scores)
    error = scores.std() / np.sqrt(400)
    assert estimate == pytest.approx(scores.mean())
    assert (high - low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.04)
    narrow = questions_interval(scores, level=0.5)
    assert low < narrow.low < estimate < narrow.high < high


def test_pairing_removes_what_questions_share():
    rng = np.random.default_rng(2)
    difficulty = rng.random(300)
    a = difficulty + 0.01 * rng.standard_normal(300) + 0.02
    difference, low, high = paired_bootstrap(a, difficulty)
    assert difference == pytest.approx((a - difficulty).mean())
    assert 0 < low < difference < high < 0.03
    assert paired_bootstrap(difficulty, difficulty) == (0.0, 0.0, 0.0)


def test_the_same_seed_gives_the_same_interval():
    rng = np.random.default_rng(3)
    a, b = rng.random((2, 50))
    assert paired_bootstrap(a, b, seed=5) == paired_bootstrap(a, b, seed=5)
    assert paired_bootstrap(a, b, seed=5) != paired_bootstrap(a, b, seed=6)
    # One draw of questions for every method: swapping the methods mirrors the interval.
    difference, low, high = paired_bootstrap(b, a, seed=5)
    np.testing.assert_allclose(
        paired_bootstrap(a, b, seed=5), (-difference, -high, -low), atol=1e-12
    )


def test_chunks_do_not_change_the_draws(monkeypatch):
    scores = np.random.default_rng(4).random((2, 30))
    whole = question_means(scores, 100, np.random.default_rng(0))
    monkeypatch.setattr("waterline.evaluation.intervals.CHUNK", 70)
    np.testing.assert_allclose(question_means(scores, 100, np.random.default_rng(0)), whole)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 9, 10, 35, 199, 4095])
@pytest.mark.parametrize("level", [0.05, 0.5, 0.95, 0.999])
def test_quantiles_are_those_of_students_t(degrees, level):
    expected = stats.t.ppf((1 + level) / 2, degrees)
    assert student_t(degrees, level) == pytest.approx(expected, rel=1e-9)


def answers(rng, seeds, questions, share, interaction=1.0):
    """Scores whose mean has ``share`` of its variance, 1 in all but for interaction, from seeds."""
    of_seeds = rng.standard_normal((seeds, 1)) * np.sqrt(share * seeds)
    of_questions = rng.standard_normal((1, questions)) * np.sqrt((1 - share) * questions)
    rest = rng.standard_normal((seeds, questions)) * np.sqrt((1 - share) * questions)
    return of_seeds + of_questions + interaction * rest


def test_runs_interval_by_hand():
    rng = np.random.default_rng(5)
    d = answers(rng, 6, 80, 0.5)
    estimate, low, high = runs_interval(d)
    over_seeds = stats.t.interval(0.95, 5, 0, stats.sem(d.mean(axis=1)))[1]
    over_questions = stats.t.interval(0.95, 79, 0, stats.sem(d.mean(axis=0)))[1]
    assert estimate == pytest.approx(d.mean())
    assert (high - estimate, estimate - low) == pytest.approx(
        [np.hypot(over_seeds, over_questions)] * 2
    )
    # One question, or one value per seed, leaves Student's interval over the seeds.
    alone = runs_interval(d[:, :1])
    assert alone[1:] == pytest.approx(stats.t.interval(0.95, 5, d[:, 0].mean(), stats.sem(d[:, 0])))


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_runs_interval_covers_what_it_says(seeds, share):
    rng = np.random.default_rng(seeds)
    hits = 0
    for _ in range(1500):
        _, low, high = runs_interval(answers(rng, seeds, 40, share, interaction=0.0))
        hits += low <= 0.0 <= high
    assert hits / 1500 >= 0.93


def test_shares_stay_in_the_unit_interval_and_cover_near_its_end():
    rng = np.random.default_rng(8)
    hits = {True: 0, False: 0}
    for _ in range(1000):
        p = np.clip(0.96 + 0.03 * rng.standard_normal(5), 0, 1)  # of each seed
        scores = (rng.random((5, 100)) < p[:, None]).astype(float)
        for shares in hits:
            _, low, high = runs_interval(scores, shares=shares)
            hits[shares] += low <= 0.9586 <= high  # the mean of the clipped p
            assert not shares or 0.0 <= low <= scores.mean() <= high <= 1.0
    assert hits[True] >= 0.93 * 1000
    assert hits[True] > hits[False]
    for scores in (np.zeros((3, 4)), np.ones((3, 4))):
        assert len(set(runs_interval(scores, shares=True))) == 1
    middle = 0.5 + 0.01 * rng.standard_normal((3, 50))
    np.testing.assert_allclose(
        runs_interval(middle, shares=True), runs_interval(middle), rtol=0, atol=1e-3
    )


def test_units_within_groups_cover_what_they_say():
    """Two batches at each of twelve checkpoints, whose curve is fixed."""
    rng = np.random.default_rng(7)
    curve = np.repeat(np.linspace(0.6, 1.0, 12), 2)
    groups = np.repeat(np.arange(12), 2)
    hits = 0
    for _ in range(2000):
        _, low, high = within_interval(curve + 0.05 * rng.standard_normal(24), groups)
        hits += low <= curve.mean() <= high
    assert hits / 2000 == pytest.approx(0.95, abs=0.015)
    uneven = within_interval([1.0, 3.0, 10.0, 10.0, 13.0], ["a", "a", "b", "b", "b"])
    half = stats.t.ppf(0.975, 3) * np.sqrt((2 + 6) / 3 / 5)
    assert uneven == pytest.approx((7.4, 7.4 - half, 7.4 + half))


def test_runs_are_paired_by_seed():
    rng = np.random.default_rng(6)
    base = rng.standard_normal((4, 1)) + rng.standard_normal((4, 60))
    better = base + 0.1
    np.testing.assert_allclose(runs_interval(better, base), (0.1, 0.1, 0.1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_bootstrap([0.1, 0.2], [0.1]), "same questions"),
        (lambda: paired_bootstrap([0.1, np.nan], [0.1, 0.2]), "a holds NaN"),
        (lambda: paired_bootstrap([], []), "a has shape"),
        (lambda: paired_bootstrap(np.zeros((2, 3)), np.zeros((2, 3))), "a has shape"),
        (lambda: questions_interval([0.1], level=1.0), "level is 1.0"),
        (lambda: questions_interval([0.1], resamples=0), "resamples is 0"),
        (lambda: runs_interval([[0.1, 0.2]]), "one seed"),
        (lambda: runs_interval([0.1, 0.2]), "a has shape"),
        (lambda: runs_interval([[0.1], [1.2]], shares=True), "shares lie in"),
        (lambda: runs_interval([[0.1], [0.2]], level=0.0), "level is 0.0"),
        (lambda: within_interval([0.1, 0.2], [0, 1]), "no group has two units"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
