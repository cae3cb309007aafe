import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from waterline.allocation import WaterlineAllocator, bounded_counts, fidelity
from waterline.allocation.bounded import BoundedWaterline

probability = st.floats(1e-9, 1 - 1e-9)


@st.composite
def problems(draw, most=12):
    p = np.array(draw(st.lists(probability, min_size=1, max_size=most)))
    n_min = draw(st.integers(2, 10))
    n0 = n_min + draw(st.integers(0, 15))
    n_max = n0 + draw(st.integers(0, 40))
    budget = draw(st.integers(len(p) * n_min, len(p) * n_max))
    return p, budget, n_min, n_max


@given(problems())
def test_continuous_counts(problem):
    p, budget, n_min, n_max = problem
    x, c = bounded_counts(p, budget, n_min, n_max)
    assert x.sum() == pytest.approx(budget, rel=1e-12)
    assert (x >= n_min).all()
    assert (x <= n_max).all()
    assert (np.diff(x[np.argsort(p)]) <= 1e-9).all()  # non-increasing in p
    inside = (x > n_min * (1 + 1e-9)) & (x < n_max * (1 - 1e-9))
    np.testing.assert_allclose(fidelity(p, x)[inside], -np.expm1(-c), rtol=1e-9)


@given(problems())
@settings(max_examples=60)
def test_the_waterline_solves_the_max_min_problem(problem):
    """max t with h_q (x_q − 1) ≥ t, Σ x = M and bounds is a linear programme."""
    p, budget, n_min, n_max = problem
    p = np.clip(p, 1e-4, 1 - 1e-4)  # within what the solver resolves
    x, _ = bounded_counts(p, budget, n_min, n_max)
    h = -np.log1p(-p)
    b = len(p)
    solution = linprog(
        c=np.r_[np.zeros(b), -1.0],
        A_ub=np.c_[-np.diag(h), np.ones(b)],
        b_ub=-h,
        A_eq=np.r_[np.ones(b), 0.0][None],
        b_eq=[budget],
        bounds=[(n_min, n_max)] * b + [(0, None)],
    )
    assert solution.success
    assert (h * (x - 1)).min() == pytest.approx(-solution.fun, rel=1e-6, abs=1e-8)


@given(problems(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_lower_bounds_of_each_prompt(problem, seed):
    p, budget, n_min, n_max = problem
    slack = budget - len(p) * n_min
    lower = n_min + np.random.default_rng(seed).integers(0, 1 + slack // len(p), len(p))
    lower = np.minimum(lower, n_max)
    x, c = bounded_counts(p, budget, n_min, n_max, lower)
    assert x.sum() == pytest.approx(budget, rel=1e-12)
    np.testing.assert_allclose(x, np.clip(1 - c / np.log1p(-p), lower, n_max), rtol=1e-9)
    counts = WaterlineAllocator(n_min, n_max, u0=0.0).plan(p, budget=budget, lower=lower).counts
    assert counts.sum() == budget
    assert ((counts == 0) | (counts >= lower)).all()


@given(problems(most=7))
@settings(max_examples=60)
def test_the_refill_beats_every_other_completion(problem):
    p, budget, n_min, n_max = problem
    b = len(p)
    x, c = bounded_counts(p, budget, n_min, n_max)
    counts, _, _ = BoundedWaterline(p, np.full(b, n_min), n_max, np.arange(b)).integers(
        b, budget, 0, 2 * b - 1
    )
    if budget in (b * n_min, b * n_max):
        np.testing.assert_array_equal(counts, x)
        return
    floors = np.floor(np.where(x < n_max, 1 + (x - 1) * (1 - 1e-12), x)).astype(int)
    floors = np.maximum(floors, n_min)
    # A count that reaches the cap at c itself may start one below it.
    floors = np.minimum(floors, counts)
    target = -np.expm1(-c)
    r = budget - floors.sum()
    assert set(counts - floors) <= {0, 1}
    error = ((fidelity(p, counts) - target) ** 2).sum()
    for rows in itertools.combinations(np.flatnonzero(floors < n_max), int(r)):
        other = floors.copy()
        other[list(rows)] += 1
        assert error <= ((fidelity(p, other) - target) ** 2).sum() + 1e-12


def test_published_example():
    p = [0.02, 0.1, 0.3, 0.7]
    x, c = bounded_counts(p, 64, 2, 64)
    assert c == pytest.approx(0.954797, abs=5e-7)
    np.testing.assert_allclose(x, [48.261, 10.062, 3.677, 2], atol=5e-4)
    x, c = bounded_counts(p, 64, 2, 32)
    assert c == pytest.approx(2.209443, abs=5e-7)
    np.testing.assert_allclose(x, [32, 21.970, 7.195, 2.835], atol=6e-4)


def test_budgets_at_the_bounds_force_every_count():
    p = np.array([0.1, 0.5, 0.9])
    assert (bounded_counts(p, 6, 2, 8)[0] == 2).all()
    assert (bounded_counts(p, 24, 2, 8)[0] == 8).all()


def test_extreme_probabilities():
    x, _ = bounded_counts([1e-300, 1 - 2**-53, 0.5], 48, 2, 40)
    assert x.sum() == pytest.approx(48)
    assert x[0] == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.5], 200, 2, 64), "raise n_max to at least 100"),
        (([0.5, 0.5], 3, 2, 64), "raise the budget"),
        (([0.5, 1.0], 32, 2, 64), "np.clip"),
        (([0.5], 8, 1, 64), "n_min=1: must be"),
        (([0.5], 8, 2, 64, [70]), r"lower\[0\] is 70"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        bounded_counts(*arguments)
