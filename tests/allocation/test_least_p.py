"""Allocation down to the least success probability that it takes."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waterline.allocation import LEAST_P, MOST_P, WaterlineAllocator

mpmath.mp.dps = 60  # of any exponent, so nothing under- or overflows


def plainly(p, budget, n_min, n_max):
    """Equations 34 to 38 in 60 digits: the water level by bisection, then the remainder by Δ."""
    h = [-mpmath.log1p(-mpmath.mpf(float(x))) for x in p]

    def counts(c):
        return [min(mpmath.mpf(n_max), max(mpmath.mpf(n_min), 1 + c / x)) for x in h]

    low, high = mpmath.log(min(h) / 2), mpmath.log(max(h) * n_max)
    for _ in range(250):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(counts(mpmath.exp(middle))) < budget else (low, middle)
    c = mpmath.exp(low)
    whole = [int(mpmath.floor(x)) for x in counts(c)]
    target = -mpmath.expm1(-c)

    def error(x, n):
        return (-mpmath.expm1(-(n - 1) * x) - target) ** 2

    while sum(whole) < budget:
        grows = [
            (error(x, n + 1) - error(x, n), row)
            for row, (x, n) in enumerate(zip(h, whole, strict=True))
            if n < n_max
        ]
        whole[min(grows)[1]] += 1
    return whole


exponent = st.floats(-307.6, -1e-9)


@given(st.lists(exponent, min_size=1, max_size=8), st.integers(2, 6), st.data())
@settings(max_examples=80, deadline=None)
def test_counts_are_those_of_sixty_digits(exponents, n_min, data):
    if data.draw(st.booleans()):  # all of them near each other, so that the level lies between them
        exponents = [exponents[0] + (e - exponents[0]) / 300 for e in exponents]
    p = np.clip(10.0 ** np.array(exponents), LEAST_P, MOST_P)
    p = np.unique(p)  # what is equal but for its place is given by place
    n_max = data.draw(st.integers(n_min, 40))
    n0 = data.draw(st.integers(n_min, n_max))
    plan = WaterlineAllocator(n_min=n_min, n_max=n_max, u0=0.0).plan(p, n0=n0)
    assert plan.counts.tolist() == plainly(p, n0 * len(p), n_min, n_max)
    assert np.isfinite(plan.water_level)


@pytest.mark.parametrize("scale", [2.0**-k for k in (0, 400, 500, 600, 900, 945)])
def test_a_power_of_two_changes_no_count(scale):
    """Where κ is linear in p to the last digit, only ratios of the p matter."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        p = rng.uniform(0.02, 1.0, size=40) * 1e-21
        allocator = WaterlineAllocator(n_max=64, u0=0.0)
        expected = allocator.plan(p, n0=16).counts
        assert len(set(expected.tolist())) > 3
        assert (allocator.plan(p * scale, n0=16).counts == expected).all()


def test_a_whole_batch_at_the_bound_is_uniform():
    for p in (LEAST_P, MOST_P):
        plan = WaterlineAllocator(n_max=64, u0=0.0).plan(np.full(4096, p), n0=16)
        assert set(plan.counts.tolist()) == {16}


@pytest.mark.parametrize("p", [0.0, 5e-324, np.nextafter(LEAST_P, 0.0), 1.0, np.nan, -0.5])
def test_beyond_the_bounds_is_refused(p):
    with pytest.raises(ValueError, match=r"p\[1\] is .*strictly between 0 and 1"):
        WaterlineAllocator().plan(np.array([0.5, p]), n0=16)
