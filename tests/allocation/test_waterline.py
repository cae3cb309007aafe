import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocation.algorithm2 import search
from waterline.allocation import (
    Request,
    UniformAllocator,
    WaterlineAllocator,
    bounded_counts,
    mixed_probability,
)

# Values at which exposures are multiples of each other, so that counts come out whole.
NICE = [0.5, 0.75, 0.875, 0.9, 0.99, 0.999, 0.25, 0.4375, 0.1, 0.19, 0.36, 1 - 2**-0.5]


def estimates(kind, batch, rng):
    if kind == "beta":
        return np.clip(rng.beta(*rng.uniform(0.05, 3, 2), batch), 1e-12, 1 - 1e-12)
    if kind == "duplicates":
        return rng.choice(rng.uniform(1e-6, 1 - 1e-6, max(1, batch // 8)), batch)
    if kind == "nice":
        return rng.choice(NICE, batch)
    if kind == "history":
        n = rng.integers(0, 64, batch)
        return (0.5 + rng.binomial(n, rng.beta(0.5, 0.5, batch))) / (1 + n)
    if kind == "rounded":  # with mirrored pairs p and 1 − p
        return np.clip(rng.random(batch).round(2), 0.01, 0.99)
    if kind == "pilot":
        return np.clip(rng.integers(0, 9, batch) / 8, 1 / 16, 15 / 16)
    if kind == "easy":
        return 1 - 0.3 * rng.random(batch) ** 6 - 1e-14
    if kind == "hard":
        return np.exp(-25 * rng.random(batch) - 0.1)
    if kind == "equal":
        return np.full(batch, rng.uniform(0.01, 0.99))
    return -np.expm1(-rng.uniform(0.01, 3) / rng.integers(1, 40, batch))  # whole


@pytest.mark.parametrize(
    "kind",
    ["beta", "duplicates", "nice", "history", "rounded", "pilot", "easy", "hard", "equal", "whole"],
)
def test_counts_equal_algorithm_2_with_the_papers_bisection(kind):
    rng = np.random.default_rng([7, *kind.encode()])
    for trial in range(45):
        batch = int(rng.integers(1, 513 if trial % 15 == 0 else 40))
        n_min = int(rng.integers(2, 20))
        n0 = n_min + int(rng.integers(0, 20))
        n_max = n0 + int(rng.integers(0, rng.choice([2, 8, 100])))
        u0 = float(rng.choice([0.0, 0.05, 0.3, rng.uniform(0, 0.9)]))
        p = estimates(kind, batch, rng)
        np.testing.assert_array_equal(
            WaterlineAllocator(n_min, n_max, u0).allocate(p, n0=n0),
            search(p, batch * n0, n_min, n_max, u0),
            err_msg=f"{trial=} {batch=} {n_min=} {n0=} {n_max=} {u0=}",
        )


@st.composite
def batches(draw):
    p = draw(st.lists(st.floats(1e-9, 1 - 1e-9), min_size=1, max_size=40))
    n_min = draw(st.integers(2, 10))
    n0 = n_min + draw(st.integers(0, 15))
    n_max = n0 + draw(st.integers(0, 40))
    u0 = draw(st.sampled_from([0.0, 0.05, 0.5, 0.9]))
    return np.array(p), n0, WaterlineAllocator(n_min, n_max, u0)


@given(batches())
def test_sum_bounds_and_distance_from_the_continuous_counts(batch):
    p, n0, allocator = batch
    plan = allocator.plan(p, n0=n0)
    kept = plan.counts[plan.active]
    assert plan.counts.dtype == np.int64
    assert plan.counts.sum() == len(p) * n0
    assert (kept >= allocator.n_min).all()
    assert (kept <= allocator.n_max).all()
    assert (plan.counts[~plan.active] == 0).all()
    x, c = bounded_counts(p[plan.active], len(p) * n0, allocator.n_min, allocator.n_max)
    assert c == pytest.approx(plan.water_level)
    assert (np.abs(kept - x) <= 1 + 1e-9).all()
    assert plan.weights @ plan.counts == pytest.approx(n0 * plan.active.sum())
    assert (plan.weights[~plan.active] == 0).all()


@given(batches(), st.randoms(use_true_random=False))
def test_order_does_not_matter_when_all_estimates_differ(batch, random):
    p, n0, allocator = batch
    # Distinct, also in the mixed probability, which is symmetric about one half.
    p = np.unique(np.round(p / 2, 6)) + 1e-7
    order = list(range(len(p)))
    random.shuffle(order)
    counts = allocator.allocate(p, n0=n0)
    scores = mixed_probability(p, allocator.n_max)
    if len(np.unique(scores)) == len(p):
        np.testing.assert_array_equal(allocator.allocate(p[order], n0=n0), counts[order])


def test_ties_go_to_the_lower_place_in_the_batch():
    allocator = WaterlineAllocator(n_min=18, n_max=24, u0=0.0)
    assert allocator.allocate([0.99, 0.97, 0.97, 0.9], n0=20).tolist() == [19, 19, 18, 24]


def test_published_examples():
    assert WaterlineAllocator().allocate([0.02, 0.1, 0.3, 0.7], n0=16).tolist() == [48, 10, 4, 2]
    p = [0.001, 0.05, 0.2, 0.5, 0.8, 0.97, 0.995, 0.4]
    assert WaterlineAllocator(n_max=32).allocate(p, n0=8).tolist() == [0, 32, 15, 5, 3, 2, 0, 7]


def test_equal_estimates_give_equal_counts():
    plan = WaterlineAllocator().plan(np.full(7, 0.3), n0=16)
    assert (plan.counts == 16).all()
    assert (plan.weights == 1).all()
    assert not plan.uniform


def test_capacity_fallback_keeps_the_budget():
    plan = WaterlineAllocator(n_max=32, u0=0.9).plan([1e-6] * 6, n0=16)
    assert plan.counts.tolist() == [32, 32, 32, 0, 0, 0]
    assert plan.active.tolist() == [True] * 3 + [False] * 3


def test_without_the_correction_active_prompts_weigh_one():
    p = [0.001, 0.05, 0.2, 0.5, 0.8, 0.97, 0.995, 0.4]
    with_it, without = (
        WaterlineAllocator(n_max=32, correct=correct).plan(p, n0=8) for correct in (True, False)
    )
    np.testing.assert_array_equal(with_it.counts, without.counts)
    np.testing.assert_array_equal(without.weights, without.active.astype(float))


def test_expected_gradients_by_arm():
    """Σ over prompts of weight × count / M is 1/B with the correction, N_q/(N0 B) without."""
    p, n0 = [0.01, 0.2, 0.6, 0.9], 8
    for correct in (True, False):
        plan = WaterlineAllocator(n_max=32, correct=correct).plan(p, n0=n0)
        share = plan.weights * plan.counts / plan.counts.sum()
        expected = plan.active / 4 if correct else plan.counts / (n0 * 4)
        np.testing.assert_allclose(share, expected)


def test_one_unknown_prompt_makes_the_plan_uniform():
    plan = WaterlineAllocator().plan([0.1, np.nan, 0.9], known=[True, False, True], n0=16)
    assert plan.uniform
    assert np.isnan(plan.water_level)
    assert plan.counts.tolist() == [16, 16, 16]
    assert plan.weights.tolist() == [1, 1, 1]
    assert plan.active.all()


def test_the_index_repeats_the_rows():
    plan = WaterlineAllocator(n_max=32).plan([0.001, 0.05, 0.2, 0.5], n0=8)
    assert plan.index.dtype == np.int64
    np.testing.assert_array_equal(np.bincount(plan.index, minlength=4), plan.counts)
    assert (np.diff(plan.index) >= 0).all()


def test_one_round():
    allocator = WaterlineAllocator()
    request = Request(p=np.array([0.1, 0.6]), known=np.array([True, True]), n0=16)
    plan = allocator.start(request)
    np.testing.assert_array_equal(plan.counts, allocator.allocate(request.p, n0=16))
    np.testing.assert_array_equal(plan.totals, plan.counts)
    assert allocator.fixed_budget
    assert allocator.next(None) is None


@pytest.mark.parametrize(
    ("p", "keywords", "message"),
    [
        ([0.5, 1.0], {"n0": 16}, r"p\[1\] is 1.0"),
        ([0.0, 0.5], {"n0": 16}, r"p\[0\] is 0.0"),
        ([0.5, float("nan")], {"n0": 16}, r"p\[1\] is nan"),
        ([], {"n0": 16}, "shape"),
        ([[0.5]], {"n0": 16}, "shape"),
        ([0.5], {}, "pass n0"),
        ([0.5], {"n0": 0}, "n0=0: must be"),
        ([0.5], {"n0": 2.5}, "whole number"),
        ([0.5, 0.5], {"n0": 65}, "raise n_max to at least 65"),
        ([0.5, 0.5], {"n0": 1}, "raise the budget"),
        ([0.5, 0.5], {"n0": 8, "known": [True]}, "known has shape"),
        ([0.5, 0.5], {"n0": 8, "known": [1, 1]}, "known has shape"),
        ([0.5, 0.5], {"n0": 8, "lower": [2]}, "lower has shape"),
        ([0.5, 0.5], {"n0": 8, "lower": [2, 65]}, r"lower\[1\] is 65"),
        ([0.5, 0.5], {"n0": 8, "lower": [10, 10]}, "lower the bounds"),
        ([0.5, 0.5], {"n0": 8, "lower": [2, 10], "known": [True, False]}, "even share"),
    ],
)
def test_bad_input(p, keywords, message):
    with pytest.raises(ValueError, match=message):
        WaterlineAllocator().plan(p, **keywords)


@pytest.mark.parametrize(
    "arguments", [{"n_min": 1}, {"n_min": 4, "n_max": 3}, {"u0": 1.0}, {"u0": -0.1}]
)
def test_bad_arguments(arguments):
    with pytest.raises(ValueError, match="must"):
        WaterlineAllocator(**arguments)


@pytest.mark.parametrize(("batch", "milliseconds"), [(256, 2.0), (4096, 25.0)])
def test_fast_enough_for_a_training_step(batch, milliseconds):
    rng = np.random.default_rng(0)
    taken = []
    for _ in range(20):
        p = np.clip(rng.beta(0.5, 0.5, batch), 1e-6, 1 - 1e-6)
        start = time.thread_time()
        WaterlineAllocator().allocate(p, n0=16)
        taken.append(time.thread_time() - start)
    assert 1000 * min(taken) < milliseconds  # the least, since neighbours on a core slow it down


def test_uniform():
    allocator = UniformAllocator()
    assert allocator.allocate([np.nan] * 3, n0=4).tolist() == [4, 4, 4]
    plan = allocator.plan([0.0, 1.0, 0.5], budget=8)
    assert plan.uniform
    assert plan.counts.tolist() == [3, 3, 2]
    np.testing.assert_allclose(plan.weights * plan.counts, 8 / 3)
    few = allocator.plan([0.5] * 3, budget=2)
    assert few.counts.tolist() == [1, 1, 0]
    assert few.weights.tolist() == [2 / 3, 2 / 3, 0]
    assert few.active.tolist() == [True, True, False]
    with pytest.raises(ValueError, match="even share"):
        allocator.plan([0.5] * 3, n0=4, lower=[2, 5, 2])
