import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterline.success import DiscountedBeta

ids_of_any_kind = st.integers(-(2**63), 2**63 - 1)


def history(*epochs, **parameters):
    """A history of prompt 7 after epochs of (trials, successes)."""
    h = DiscountedBeta(**parameters)
    for n, k in epochs:
        h.observe([7], [n], [k])
        h.end_epoch()
    return h


def test_published_values():
    for (s, f), p in {(0, 16): 0.0294118, (1, 15): 0.0882353, (16, 0): 0.9705882}.items():
        assert history((s + f, s)).estimate([7])[0] == pytest.approx(p, abs=5e-8)
    chain = [(16, 2), (0, 0), (20, 5)]
    for length, p in enumerate([0.147059, 0.153846, 0.220833], start=1):
        assert history(*chain[:length]).estimate([7])[0] == pytest.approx(p, abs=5e-7)


def test_frozen_within_an_epoch():
    h = history((16, 2))
    before, _ = h.estimate([7])
    h.observe([7], [16], [16])
    assert h.estimate([7])[0] == before
    h.end_epoch()
    assert h.estimate([7])[0] > before


def test_known_after_observations_were_taken_in():
    h = DiscountedBeta(alpha=1.0, beta=3.0, discount=0.0)
    assert h.estimate([1])[0] == 0.25
    assert not h.estimate([1])[1]
    h.observe([1, 2], [4, 0], [0, 0])
    assert not h.estimate([1])[1].any()
    h.end_epoch()
    assert h.estimate([2, 1, 3])[1].tolist() == [False, True, False]
    h.end_epoch()  # everything is discounted to nothing, yet the prompt stays known
    p, known = h.estimate([1])
    assert p == 0.25
    assert known


@given(
    st.lists(
        st.lists(
            st.tuples(ids_of_any_kind | st.integers(-3, 3), st.integers(0, 9), st.integers(0, 9)),
            max_size=8,
        ),
        max_size=5,
    ),
    st.sampled_from([0.0, 0.75, 1.0]),
)
def test_equals_the_recursion_prompt_by_prompt(epochs, discount):
    h = DiscountedBeta(0.5, 1.5, discount)
    s, f, seen, plain = {}, {}, set(), set()
    for epoch in epochs:
        n, k = {}, {}
        for q, a, b in epoch:
            n[q], k[q] = n.get(q, 0) + max(a, b), k.get(q, 0) + min(a, b)
        half = len(epoch) // 2
        for part in (epoch[:half], epoch[half:]):
            rows = np.array(part, dtype=np.int64).reshape(-1, 3)
            h.observe(rows[:, 0], rows[:, 1:].max(1), rows[:, 1:].min(1))
        h.end_epoch()
        plain |= n.keys()
        for q in plain:
            s[q] = discount * s.get(q, 0.0) + k.get(q, 0)
            f[q] = discount * f.get(q, 0.0) + n.get(q, 0) - k.get(q, 0)
        seen |= {q for q in n if n[q] > 0}
    asked = [*sorted(plain, key=str), 12345]
    p, known = h.estimate(asked)
    expected = [(0.5 + s.get(q, 0.0)) / (2 + s.get(q, 0.0) + f.get(q, 0.0)) for q in asked]
    np.testing.assert_allclose(p, expected, rtol=1e-14)
    assert known.tolist() == [q in seen for q in asked]


def test_resume_is_exact():
    rng = np.random.default_rng(3)

    def epoch(h, rng):
        for _ in range(3):
            ids = rng.choice(2**40, 20, replace=False) % 60 - 30
            n = rng.integers(0, 20, 20)
            h.observe(ids, n, rng.binomial(n, 0.3))

    h = DiscountedBeta(discount=0.9)
    epoch(h, rng)
    h.end_epoch()
    epoch(h, rng)  # saved with pending counts
    text = json.dumps(h.state_dict())
    restored = DiscountedBeta()
    restored.load_state_dict(json.loads(text))
    later = np.random.default_rng(4)
    for history_, generator in ((h, later), (restored, np.random.default_rng(4))):
        history_.end_epoch()
        epoch(history_, generator)
        history_.end_epoch()
    ids = np.arange(-40, 40)
    assert h.estimate(ids)[0].tobytes() == restored.estimate(ids)[0].tobytes()
    assert (h.estimate(ids)[1] == restored.estimate(ids)[1]).all()
    assert restored.state_dict() == h.state_dict()


def test_a_saved_state_does_not_change_later():
    h = history((4, 1))
    state = h.state_dict()
    saved = json.dumps(state)
    h.observe([7], [4], [4])
    h.end_epoch()
    assert json.dumps(state) == saved


def test_an_empty_rank():
    h = DiscountedBeta()
    h.observe([], [], [])
    h.end_epoch()
    p, known = h.estimate([])
    assert p.shape == known.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], [2], [3]), "prompt 1 has 3 successes in 2 trials"),
        (([1], [2], [-1]), "prompt 1 has -1 successes"),
        (([1], [-2], [-2]), "prompt 1"),
        (([1, 2], [2], [1]), "lengths 2, 1 and 1"),
        (([0.5], [2], [1]), "ids has shape"),
        (([1], [2.0], [1]), "trials has shape"),
        (([[1]], [2], [1]), "ids has shape"),
    ],
)
def test_bad_outcomes(arguments, message):
    with pytest.raises(ValueError, match=message):
        DiscountedBeta().observe(*arguments)


@pytest.mark.parametrize("p", [{"alpha": 0.0}, {"beta": float("inf")}, {"discount": 1.1}])
def test_bad_parameters(p):
    with pytest.raises(ValueError, match=f"{next(iter(p))}"):
        DiscountedBeta(**p)


def test_bad_state():
    with pytest.raises(ValueError, match="has no alpha, beta"):
        DiscountedBeta().load_state_dict({})


def test_past_counts_are_those_that_still_count():
    history = DiscountedBeta(discount=0.5)
    for trials, successes in ([[8, 4], [2, 4]], [[0, 10], [0, 1]]):
        history.observe([7, -3], trials, successes)
        history.end_epoch()
    trials, successes = history.past([-3, 12, 7])
    assert trials.tolist() == [0.5 * 4 + 10, 0, 0.5 * 8]
    assert successes.tolist() == [0.5 * 4 + 1, 0, 0.5 * 2]
    history.observe([7], [16], [16])  # pending: not before the epoch's end
    assert history.past([7])[0].tolist() == [4]
    assert [len(part) for part in history.past([])] == [0, 0]
