import itertools
from math import comb

import numpy as np
import pytest

from waterline.evaluation import best_at_k_bootstrap, pass_at_k


def test_pass_at_k_counts_subsets():
    for n in range(1, 8):
        for c, k in itertools.product(range(n + 1), range(1, n + 1)):
            subsets = list(itertools.combinations(range(n), k))
            share = np.mean([min(s) < c for s in subsets])
            assert pass_at_k(n, c, k) == pytest.approx(share, abs=1e-14)


def test_pass_at_k_is_unbiased():
    n, p = 12, 0.07
    c = np.arange(n + 1)
    chance = np.array([comb(n, int(i)) * p**i * (1 - p) ** (n - i) for i in c])
    for k in (1, 3, 12):
        assert chance @ pass_at_k(n, c, k) == pytest.approx(1 - (1 - p) ** k, rel=1e-12)


@pytest.mark.parametrize("n", [2048, 100_000])
def test_pass_at_k_at_large_counts(n):
    for c, k in [(1, 1), (1, n // 2), (3, n // 7), (n // 3, 2), (17, 1024), (n - 1, 1), (0, n)]:
        exact = 1 - comb(n - c, k) / comb(n, k)  # integers of any size, one division
        assert pass_at_k(n, c, k) == pytest.approx(exact, rel=1e-10, abs=1e-14)
    assert pass_at_k(n, 1, n) == 1


def test_pass_at_k_broadcasts():
    n = np.array([8, 16, 8, 32])[:, None]
    c = np.array([0, 3, 8, 1])[:, None]
    k = np.array([1, 2, 8])
    result = pass_at_k(n, c, k)
    assert result.shape == (4, 3)
    for i, j in itertools.product(range(4), range(3)):
        assert result[i, j] == pass_at_k(n[i, 0], c[i, 0], k[j])
    np.testing.assert_allclose(result[:, 0], (c / n)[:, 0])
    assert pass_at_k(8, [], 2).shape == (0,)
    assert pass_at_k(8.0, 2.0, 2) == pass_at_k(8, 2, 2)


def test_more_draws_than_responses():
    with pytest.raises(ValueError, match="k = 9 is more than the n = 8"):
        pass_at_k([16, 8], [0, 0], 9)
    with pytest.raises(ValueError, match="k = 9"):
        pass_at_k(8, 0, [4, 9])


@pytest.mark.parametrize("f", [pass_at_k, best_at_k_bootstrap])
@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        (0, 0, 1, "n must be"),
        (8, 9, 1, "c must lie"),
        (8, -1, 1, "c must lie"),
        (8, 1, 0, "k must be"),
        (8, 1.5, 1, "whole numbers"),
        (8, float("nan"), 1, "whole numbers"),
    ],
)
def test_bad_counts(f, n, c, k, message):
    with pytest.raises(ValueError, match=message):
        f(n, c, k)


def test_best_at_k_counts_draws_with_replacement():
    for n, c, k in [(1, 0, 3), (3, 1, 2), (4, 3, 3), (5, 5, 2)]:
        draws = itertools.product(range(n), repeat=k)
        share = np.mean([min(d) < c for d in draws])
        assert best_at_k_bootstrap(n, c, k) == pytest.approx(share)
    assert best_at_k_bootstrap(32, 1, 32) == pytest.approx(0.638, abs=5e-4)


def test_best_at_k_sampled():
    c = np.arange(0, 33, 4)
    exact = best_at_k_bootstrap(32, c, 8)
    sampled = best_at_k_bootstrap(32, c, 8, resamples=1000, seed=1)
    error = np.sqrt(exact * (1 - exact) / 1000)
    assert (np.abs(sampled - exact) <= 5 * error).all()
    np.testing.assert_array_equal(sampled, best_at_k_bootstrap(32, c, 8, resamples=1000, seed=1))
    assert (sampled != best_at_k_bootstrap(32, c, 8, resamples=1000, seed=2)).any()
    with pytest.raises(ValueError, match="resamples is 0"):
        best_at_k_bootstrap(8, 1, 2, resamples=0)
