import math
from itertools import product

import numpy as np
import pytest

from waterline.allocation import fidelity, mixed_probability


def test_fidelity_is_the_coefficient_of_the_centred_estimator():
    """E[MaxRL centred] = κ ∂ log p, by enumeration of all outcomes of a Bernoulli(p) group."""
    for n, p in [(1, 0.3), (2, 0.4), (4, 0.1), (8, 0.02), (8, 0.97)]:
        expected = 0.0
        for outcome in product([0, 1], repeat=n):
            c = sum(outcome)
            chance = p**c * (1 - p) ** (n - c)
            score = [1 / p if r else -1 / (1 - p) for r in outcome]  # ∂ log π / ∂p
            if c:
                advantages = [r * n / c - 1 for r in outcome]
                expected += chance * sum(a * s for a, s in zip(advantages, score, strict=True)) / n
        assert fidelity(p, n) == pytest.approx(expected * p, abs=1e-12)


def test_known_values():
    assert fidelity(0.1, 4) == pytest.approx(0.271)
    assert fidelity(0.02, 16) == pytest.approx(0.2614309, abs=5e-8)
    assert mixed_probability(0.5, 2) == pytest.approx(0.5)


def test_mixed_probability_by_enumeration():
    for n, p in [(2, 0.3), (5, 0.9), (7, 0.01)]:
        mixed = sum(math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(1, n))
        assert mixed_probability(p, n) == pytest.approx(mixed, rel=1e-12)


def test_groups_of_none_and_one_hold_nothing():
    p = np.array([0.0, 1e-12, 0.5, 1.0])
    for f in (fidelity, mixed_probability):
        assert (f(p, 0) == 0).all()
        assert (f(p, 1) == 0).all()


def test_ends_of_the_unit_interval():
    assert (fidelity([0.0, 1.0], 8) == [0.0, 1.0]).all()
    assert (mixed_probability([0.0, 1.0], 8) == [0.0, 0.0]).all()


def test_small_probabilities_keep_their_digits():
    assert fidelity(1e-15, 11) == pytest.approx(1e-14, rel=1e-10)
    assert mixed_probability(1e-15, 10) == pytest.approx(1e-14, abs=2e-16)


def test_broadcasting():
    assert fidelity(np.full((3, 1), 0.2), [1, 2, 3, 4]).shape == (3, 4)
    assert mixed_probability(0.2, [[2], [3]]).shape == (2, 1)


@pytest.mark.parametrize("f", [fidelity, mixed_probability])
@pytest.mark.parametrize(("p", "n"), [(1.1, 2), (-0.1, 2), (float("nan"), 2), (0.5, -1)])
def test_bad_input(f, p, n):
    with pytest.raises(ValueError, match=r"must lie in|negative count"):
        f(p, n)
