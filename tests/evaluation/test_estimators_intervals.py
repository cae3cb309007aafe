import itertools

import numpy as np
import pytest

from waterline.evaluation import paired_bootstrap, questions_interval, runs_interval
from waterline.evaluation.intervals import question_means


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


def test_runs_interval_covers_seeds_and_questions():
    """Its variance is that of the crossed bootstrap, in closed form."""
    rng = np.random.default_rng(5)
    seeds, questions = 6, 80
    d = (
        rng.standard_normal((seeds, 1))
        + rng.standard_normal((1, questions))
        + rng.standard_normal((seeds, questions))
    )
    mean = d.mean()
    rows, columns = d.mean(1) - mean, d.mean(0) - mean
    rest = d - mean - rows[:, None] - columns[None]
    variance = (
        (rows**2).mean() / seeds
        + (columns**2).mean() / questions
        + (rest**2).mean() / (seeds * questions)
    )
    estimate, low, high = runs_interval(d, level=0.6827, resamples=20_000)
    assert estimate == pytest.approx(mean)
    assert (high - low) / 2 == pytest.approx(np.sqrt(variance), rel=0.06)
    fixed = questions_interval(d.mean(0), level=0.6827)
    assert fixed.high - fixed.low < high - low


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
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
