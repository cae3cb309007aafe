import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterline.allocation import (
    Outcomes,
    PilotWaterlineAllocator,
    Request,
    bounded_counts,
    mixed_probability,
)


def two_rounds(allocator, successes, n0, **keywords):
    batch = len(successes)
    request = Request(np.full(batch, np.nan), np.zeros(batch, dtype=bool), n0, **keywords)
    first = allocator.start(request)
    outcomes = Outcomes(first.counts, np.asarray(successes))
    second = allocator.next(outcomes)
    assert allocator.next(outcomes) is None
    return first, second


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=40),
    st.integers(4, 12),
    st.integers(0, 40),
    st.sampled_from([0.0, 0.05, 0.3, 0.8]),
)
def test_dropped_pilots_are_paid_for(successes, n0, above, u0):
    m, n_max, batch = 4, n0 + above, len(successes)
    first, second = two_rounds(PilotWaterlineAllocator(m, n_max, u0), successes, n0)
    assert (first.counts == m).all()
    assert first.counts.sum() + second.counts.sum() == batch * n0
    np.testing.assert_array_equal(second.totals, first.counts + second.counts)
    assert (second.counts[~second.active] == 0).all()
    kept = second.totals[second.active]
    assert kept.sum() == batch * n0 - m * (~second.active).sum()
    assert (kept >= m).all()
    assert (kept <= n_max).all()
    p = np.clip(np.array(successes) / m, 1 / 16, 15 / 16)[second.active]
    x, _ = bounded_counts(p, int(kept.sum()), m, n_max)
    assert (np.abs(kept - x) <= 1 + 1e-9).all()
    np.testing.assert_allclose(second.weights[second.active] * kept, n0)
    assert (second.weights[~second.active] == 0).all()
    least = mixed_probability(p, kept).min()
    assert least >= u0 - 1e-12 or len(kept) <= np.ceil(batch * (n0 - m) / max(1, n_max - m)) + 1


def test_pilots_of_the_whole_budget_leave_nothing():
    _, second = two_rounds(PilotWaterlineAllocator(m=8, u0=0.0), [0, 3, 8], n0=8)
    assert second.counts.tolist() == [0, 0, 0]
    assert second.totals.tolist() == [8, 8, 8]


def test_dropped_prompts():
    # At the largest count, U(1/16, 16) = 0.64 and U(1/2, 16) = 1.
    allocator = PilotWaterlineAllocator(m=8, n_max=16, u0=0.7)
    _, second = two_rounds(allocator, [0, 4, 4, 8], n0=12)
    assert second.active.tolist() == [False, True, True, False]
    assert second.totals.tolist() == [8, 16, 16, 8]
    assert second.counts.tolist() == [0, 8, 8, 0]
    np.testing.assert_allclose(second.weights, [0, 12 / 16, 12 / 16, 0])


def test_lower_bounds_of_a_request():
    lower = np.array([2, 20, 2])
    _, second = two_rounds(PilotWaterlineAllocator(u0=0.0), [1, 7, 1], n0=16, lower=lower)
    assert second.totals[1] == 20
    assert second.totals.sum() == 48


def test_bad_input():
    with pytest.raises(ValueError, match="m=1: must be"):
        PilotWaterlineAllocator(m=1)
    with pytest.raises(ValueError, match="n_max=4: must be"):
        PilotWaterlineAllocator(m=8, n_max=4)
    allocator = PilotWaterlineAllocator()
    known = np.ones(2, dtype=bool)
    with pytest.raises(ValueError, match="raise the budget"):
        allocator.start(Request(np.full(2, 0.5), known, n0=4))
    allocator.start(Request(np.full(2, 0.5), known, n0=16))
    with pytest.raises(ValueError, match="asked for 8 responses"):
        allocator.next(Outcomes(np.array([8, 7]), np.array([1, 1])))
    with pytest.raises(ValueError, match="between 0 and 8"):
        allocator.next(Outcomes(np.array([8, 8]), np.array([1, 9])))
    assert allocator.next(Outcomes(np.array([8, 8]), np.array([1, 2]))).counts.sum() == 16


def test_the_second_plan_has_the_estimates_that_it_rests_on():
    successes = np.array([0, 1, 4, 8])
    first, second = two_rounds(PilotWaterlineAllocator(8, 64), successes, 16)
    assert first.p_hat is None
    assert second.p_hat.tolist() == [1 / 16, 1 / 8, 0.5, 15 / 16]
    assert PilotWaterlineAllocator.estimates == "pilot"
