import numpy as np
import pytest

from waterline.success import DiscountedBeta, Oracle


def test_oracle_from_a_callable():
    oracle = Oracle(lambda ids: ids / 10)
    p, known = oracle.estimate([3, 1])
    assert p.tolist() == [0.3, 0.1]
    assert known.all()


def test_oracle_with_the_probabilities_of_the_task():
    oracle = Oracle()
    exact = np.array([0.5, 0.2, 0.9])
    p, known = oracle.estimate([5, -2, 9], exact=exact)
    assert p.tolist() == [0.5, 0.2, 0.9]
    assert known.all()
    p[0] = 0.7
    assert exact[0] == 0.5, "the estimates are a copy"
    oracle.observe([9], [16], [0])
    oracle.end_epoch()
    assert oracle.estimate([9], exact=[0.9])[0] == 0.9, "outcomes teach it nothing"
    assert oracle.past([9]) is None
    oracle.load_state_dict(oracle.state_dict())
    assert oracle.estimate([7], exact=[0.1])[0] == 0.1, "and it remembers nothing"
    p, known = oracle.estimate([], exact=[])
    assert (len(p), len(known)) == (0, 0)


def test_a_callable_wins_over_what_the_task_knows():
    assert Oracle(lambda ids: ids / 10).estimate([3], exact=[0.9])[0].tolist() == [0.3]


def test_an_oracle_without_probabilities_is_a_sentence():
    with pytest.raises(ValueError, match="the oracle was given no probabilities"):
        Oracle().estimate([1, 2])


def test_a_history_does_not_read_exact_probabilities():
    history = DiscountedBeta()
    history.observe([3], [4], [1])
    history.end_epoch()
    for exact in (None, [0.9, 0.9]):
        p, known = history.estimate([3, 5], exact=exact)
        assert p.tolist() == [1.5 / 5, 0.5]
        assert known.tolist() == [True, False]


@pytest.mark.parametrize("p", [[0.5], [0.5, 1.1], [0.5, float("nan")]])
def test_bad_probabilities(p):
    with pytest.raises(ValueError, match="the oracle gave"):
        Oracle().estimate([1, 2], exact=p)
    with pytest.raises(ValueError, match="the oracle gave"):
        Oracle(lambda ids: p).estimate([1, 2])
