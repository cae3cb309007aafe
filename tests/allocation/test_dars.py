"""DARS-HW: its schedule, its two phases, what it drops and what a prompt gets in expectation."""

import itertools
from fractions import Fraction
from math import ceil, comb
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from waterline.advantages import dr_grpo
from waterline.allocation import DARSAllocator, Outcomes, Plan, Request


def request(batch, n0=16, **more):
    return Request(np.full(batch, np.nan), np.zeros(batch, dtype=bool), n0, **more)


def rounds(allocator, draws, n0=16, **more):
    """The plans of a batch whose prompt q has the successes ``draws[q]``, read one after another.

    Also the trials and successes that they end with.
    """
    batch = len(draws)
    plans, plan = [], allocator.start(request(batch, n0, **more))
    trials = successes = np.zeros(batch, dtype=np.int64)
    while plan is not None:
        plans.append(plan)
        trials = trials + plan.counts
        successes = np.array([sum(d[:n]) for d, n in zip(draws, trials, strict=True)], dtype=int)
        plan = allocator.next(Outcomes(trials, successes))
    assert allocator.next(Outcomes(trials, successes)) is None
    return plans, trials, successes


def first(k, m=8, later=0, n_max=64):
    """k successes among the first m responses, then ``later`` successes before failures."""
    return [1] * k + [0] * (m - k) + [1] * later + [0] * (n_max - m - later)


def papers_total(k, m, n_max):
    """The further count of the paper, in fractions, as it stands there."""
    u = Fraction(k, m) if k else Fraction(1, 2 * m)
    if u >= Fraction(1, 2):
        return m
    s, peak = 2 * u * (1 - u), Fraction(m, 2)
    return m + min(ceil((2 * (1 - u) * peak - m * s) / s), n_max - m)


def test_the_papers_own_numbers():
    plans, trials, _ = rounds(DARSAllocator(), [first(k) for k in range(9)])
    assert [len(plan.counts) for plan in plans] == [9, 9, 9]
    assert plans[0].counts.tolist() == [8] * 9
    assert plans[1].counts.tolist() == [56, 24, 8, 3, 0, 0, 0, 0, 0]
    assert plans[2].counts.tolist() == [0] * 9
    assert trials.tolist() == [64, 32, 16, 11, 8, 8, 8, 8, 8]
    assert plans[0].p_hat is None
    assert plans[2].p_hat.tolist() == [1 / 16, *(k / 8 for k in range(1, 9))]
    assert plans[2].totals.tolist() == trials.tolist()


@pytest.mark.parametrize("m", [2, 3, 5, 8, 16])
@pytest.mark.parametrize("n_max", [16, 17, 64, 10_000])
def test_totals_are_those_of_the_papers_formula(m, n_max):
    draws = [first(k, m, n_max=n_max) for k in range(m + 1)]
    _, trials, _ = rounds(DARSAllocator(n_max, m), draws)
    assert trials.tolist() == [papers_total(k, m, n_max) for k in range(m + 1)]


def test_the_first_phase_is_half_of_n0():
    for n0, m in ((1, 2), (3, 2), (5, 2), (16, 8), (128, 64)):
        assert DARSAllocator(n_max=512).start(request(3, n0)).counts.tolist() == [m] * 3
    assert DARSAllocator(m=4).start(request(3, 128)).counts.tolist() == [4] * 3
    assert DARSAllocator().start(request(3, 16, budget=60)).counts.tolist() == [10] * 3


def test_what_all_or_no_response_solved_is_dropped():
    # Solved in the second phase alone; never; at once; in the first phase alone; by half.
    draws = [first(0, later=1), first(0), first(8), first(1), first(4)]
    plans, trials, successes = rounds(DARSAllocator(), draws)
    assert plans[0].active.all()
    assert plans[1].active.all()
    assert plans[2].active.tolist() == [True, False, False, True, True]
    assert plans[2].weights.tolist() == [1, 0, 0, 1, 1]
    row = np.repeat(np.arange(5), trials)[::-1]
    success = np.concatenate([d[:n] for d, n in zip(draws, trials, strict=True)]).astype(bool)[::-1]
    kept = DARSAllocator().keep(row, success, success.astype(float))
    assert set(row[kept]) == {0, 3, 4}
    assert np.bincount(row[kept]).tolist() == [64, 0, 0, 32, 8]
    assert successes.tolist() == [1, 0, 8, 1, 4]


@pytest.mark.parametrize(("k", "total"), [(8, 8), (0, 64)])
def test_a_batch_that_is_all_solved_or_not_at_all_teaches_nothing(k, total):
    plans, trials, _ = rounds(DARSAllocator(), [first(k)] * 3)
    assert trials.tolist() == [total] * 3
    assert len(plans) == (2 if k else 3), "no second phase when nothing is hard"
    assert not plans[-1].active.any()
    row = np.repeat(np.arange(3), total)
    assert not DARSAllocator().keep(row, np.full(len(row), k > 0), np.zeros(len(row))).any()


@pytest.mark.parametrize("k", range(9))
def test_one_prompt(k):
    plans, trials, _ = rounds(DARSAllocator(), [first(k)])
    assert trials.tolist() == [papers_total(k, 8, 64)]
    assert plans[-1].active.tolist() == [0 < k < 8]


def test_no_response_at_all_keeps_nothing():
    nothing = np.zeros(0)
    assert DARSAllocator().keep(nothing.astype(int), nothing.astype(bool), nothing).shape == (0,)


@given(
    st.integers(2, 20).flatmap(
        lambda m: st.tuples(
            st.just(m), st.integers(m, 200), st.lists(st.integers(0, m), min_size=1, max_size=30)
        )
    ),
    st.randoms(use_true_random=False),
)
def test_properties_of_any_batch(case, random):
    m, n_max, solved = case
    draws = [first(k, m, random.randint(0, n_max - m), n_max) for k in solved]
    plans, trials, successes = rounds(DARSAllocator(n_max, m), draws)
    u = np.maximum(solved, 0.5) / m
    assert ((m <= trials) & (trials <= n_max)).all()
    assert (trials[u >= 0.5] == m).all()
    free = trials < n_max
    assert (trials * u >= m / 2 - 1e-9)[free].all()
    hard = free & (u < 0.5)
    assert ((trials - 1) * u < m / 2)[hard].all(), "no rollout more than it takes"
    easier = np.argsort(u)
    assert (np.diff(trials[easier]) <= 0).all(), "never more for an easier prompt"
    assert sum(int(plan.counts.sum()) for plan in plans) == trials.sum()
    last: Plan = plans[-1]
    assert not last.counts.any()
    np.testing.assert_array_equal(last.totals, trials)
    np.testing.assert_array_equal(last.active, (successes > 0) & (successes < trials))
    np.testing.assert_array_equal(last.weights, last.active)
    again, *_ = rounds(DARSAllocator(n_max, m), draws[::-1])
    for a, b in zip(plans, again, strict=True):
        assert a.counts.tolist() == b.counts[::-1].tolist()


def weight(p, m, n_max):
    """(weight of ∇log p, mean number of rollouts) of a prompt, by the numbers of successes."""
    factor = mean = 0.0
    for k in range(m + 1):
        n = papers_total(k, m, n_max)
        chance = comb(m, k) * p**k * (1 - p) ** (m - k)
        mean += chance * n
        for j in range(n - m + 1):
            c = k + j
            further = comb(n - m, j) * p**j * (1 - p) ** (n - m - j)
            factor += chance * further * c * (n - c) / n / (1 - p)
    return factor, mean


@pytest.mark.parametrize("n_max", [3, 5, 9])
def test_the_expected_update_is_that_of_the_page(n_max):
    """Over every outcome of both phases: Σ A ∇log π in a policy with logits θ, and p = 1/3."""
    m = 3
    theta = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64, requires_grad=True)
    right = 1  # the response that is right
    log_pi = theta.log_softmax(0)
    p = float(log_pi[right].detach().exp())
    (grad_log_p,) = torch.autograd.grad(log_pi[right], theta, retain_graph=True)
    # The wrong responses share one advantage, so their score is that of ¬right, given a failure.
    (grad_log_q,) = torch.autograd.grad((1 - log_pi[right].exp()).log(), theta)
    expected, rollouts, chances = torch.zeros(3, dtype=torch.float64), 0.0, 0.0
    for start in itertools.product([0, 1], repeat=m):
        n = papers_total(sum(start), m, n_max)
        for rest in itertools.product([0, 1], repeat=n - m):
            draws = [*start, *rest]
            chance = p ** sum(draws) * (1 - p) ** (n - sum(draws))
            allocator = DARSAllocator(n_max, m)
            plans, trials, _ = rounds(allocator, [draws])
            assert trials.tolist() == [n]
            reward, row = np.array(draws, dtype=float), np.zeros(n, dtype=int)
            advantage = dr_grpo(torch.from_numpy(reward), torch.from_numpy(row)).numpy()
            kept = allocator.keep(row, reward > 0, reward)
            of_each = advantage * kept * plans[-1].weights[row]
            expected += chance * sum(
                float(a) * (grad_log_p if r else grad_log_q)
                for a, r in zip(of_each, draws, strict=True)
            )
            rollouts += chance * n
            chances += chance
    factor, mean = weight(p, m, n_max)
    assert chances == pytest.approx(1)
    assert rollouts == pytest.approx(mean)
    torch.testing.assert_close(expected, factor * grad_log_p, rtol=1e-10, atol=1e-12)


def test_lower_bounds_of_a_request():
    lower = np.array([2, 20, 40])
    _, trials, _ = rounds(DARSAllocator(), [first(4), first(4), first(1)], lower=lower)
    assert trials.tolist() == [8, 20, 40]
    with pytest.raises(ValueError, match=r"lower\[0\] is 70 but n_max is 64"):
        DARSAllocator().start(request(2, lower=np.array([70, 2])))


def test_bad_input():
    for settings, said in (
        ({"m": 1}, "m=1: must be at least 2"),
        ({"m": 2.5}, "m=2.5: must be a whole number"),
        ({"n_max": 1}, "n_max=1: must be at least 2"),
        ({"m": 65}, "m=65: must be at most n_max, which is 64"),
    ):
        with pytest.raises(ValueError, match=said):
            DARSAllocator(**settings)
    with pytest.raises(ValueError, match="n_max=64: is below the 100 rollouts of the first phase"):
        DARSAllocator().start(request(2, 200))
    with pytest.raises(ValueError, match=r"shape \(B,\) with B ≥ 1"):
        DARSAllocator().start(request(0))
    allocator = DARSAllocator()
    assert allocator.next(Outcomes(np.array([8]), np.array([1]))) is None, "no batch is open"
    allocator.start(request(2))
    for trials in ([8, 7], [8], [8, 8, 8]):
        with pytest.raises(ValueError, match="asked for 16 responses of 2 prompts"):
            allocator.next(Outcomes(np.array(trials), np.zeros(len(trials), dtype=int)))
    for successes in ([1, 9], [-1, 1]):
        with pytest.raises(ValueError, match="between 0 and its responses"):
            allocator.next(Outcomes(np.array([8, 8]), np.array(successes)))
    plan = allocator.next(Outcomes(np.array([8, 8]), np.array([0, 2])))
    assert plan.counts.tolist() == [56, 8]
    assert not DARSAllocator.fixed_budget


def test_the_tables_of_the_page_are_true():
    page = (Path(__file__).parents[2] / "docs" / "methods" / "dars.md").read_text()
    rows = {
        cells[0].strip(): [float(x) for x in cells[1:] if x.strip().replace(".", "").isdigit()]
        for cells in (line.strip("| ").split("|") for line in page.splitlines() if "|" in line)
    }
    found = [weight(p, 8, 64) for p in rows["$p$"]]
    assert rows["$w(p)$"] == [round(factor, 2) for factor, _ in found]
    assert rows["mean rollouts"] == [round(mean, 1) for _, mean in found]
    assert rows["$15\\,p$, 16 uniform rollouts"] == [round(15 * p, 2) for p in rows["$p$"]]
    assert rows["total $N$"] == [papers_total(k, 8, 64) for k in range(5)]
