"""Exact Pass@K against arithmetic of 1,200 digits."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterline.evaluation import exact_pass_at_k

KS = [1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1024]
P = [
    0.0, 5e-324, 1e-320, 2.0**-1022, 1e-300, 1e-200, 1e-100, 1e-30, 1e-17, 1e-16, 1e-12, 1e-8,
    1e-3, 1 / 256, 0.03, 0.1, 0.5, 0.9, 0.999, 1 - 1e-12, 1 - 2.0**-53, 1.0,
]  # fmt: skip
probabilities = st.floats(0.0, 1.0)
numbers = st.integers(1, 1024)


def exactly(p, k):
    """1 − (1 − p)^k of the float's exact value, rounded once."""
    with localcontext() as context:
        context.prec = 1200  # a subnormal p has up to 1,074 digits behind the point
        return float(1 - (1 - Decimal(p)) ** k)


@pytest.mark.parametrize("k", KS)
def test_every_digit_holds_for_every_size_of_p(k):
    expected = [exactly(p, k) for p in P]
    np.testing.assert_allclose(exact_pass_at_k(P, k), expected, rtol=2e-15, atol=0)


def test_a_tiny_p_is_not_lost():
    assert 1 - (1 - 1e-300) ** 1024 == 0.0  # what the plain formula makes of it
    assert exact_pass_at_k(1e-300, 1024) == pytest.approx(1.024e-297, rel=1e-15, abs=0)
    assert exact_pass_at_k(5e-324, 1) == 5e-324


def test_the_ends_are_exact():
    assert exact_pass_at_k([0.0, 1.0], 1).tolist() == [0.0, 1.0]
    assert exact_pass_at_k([0.0, 1.0], 1024).tolist() == [0.0, 1.0]


@given(p=probabilities, k=numbers)
def test_it_is_the_formula(p, k):
    found = float(exact_pass_at_k(p, k))
    assert found == pytest.approx(exactly(p, k), rel=2e-15, abs=0)
    assert 0 <= found <= 1


@given(p=st.fractions(0, 1, max_denominator=64), k=st.integers(1, 12))
def test_it_is_the_sum_over_the_place_of_the_first_success(p, k):
    first = sum(p * (1 - p) ** i for i in range(k))
    assert float(exact_pass_at_k(float(p), k)) == pytest.approx(float(Fraction(first)), rel=1e-13)


@given(p=probabilities, other=probabilities, k=numbers, more=numbers)
def test_it_grows_with_p_and_k(p, other, k, more):
    low, high = sorted((p, other))
    few, many = sorted((k, more))
    slack = 1 + 1e-15
    assert exact_pass_at_k(low, k) <= exact_pass_at_k(high, k) * slack
    assert exact_pass_at_k(p, few) <= exact_pass_at_k(p, many) * slack
    assert p * (1 - 1e-15) <= exact_pass_at_k(p, k)


def test_p_and_k_broadcast():
    found = exact_pass_at_k(np.array([[0.1], [0.5]]), np.array([1, 2, 4]))
    assert found.shape == (2, 3)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found[1], [0.5, 0.75, 0.9375], rtol=1e-15)
    assert exact_pass_at_k(0.5, 2).shape == ()
    assert exact_pass_at_k([], 4).shape == (0,)


@pytest.mark.parametrize("p", [-1e-9, 1 + 1e-9, float("nan"), float("inf"), [0.5, -1]])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        exact_pass_at_k(p, 4)


@pytest.mark.parametrize("k", [0, -1, float("nan"), [1, 0]])
def test_a_k_below_1_is_refused(k):
    with pytest.raises(ValueError, match="k of at least 1"):
        exact_pass_at_k(0.5, k)
