import numpy as np
import pytest

from waterline.success import Oracle, pilot_estimate


def test_oracle_from_a_callable():
    oracle = Oracle(lambda ids: ids / 10)
    p, known = oracle.estimate([3, 1])
    assert p.tolist() == [0.3, 0.1]
    assert known.all()


def test_oracle_set_by_batch():
    oracle = Oracle()
    oracle.set([5, -2, 9], [0.5, 0.2, 0.9])
    p, known = oracle.estimate([9, 7, -2])
    assert p.tolist() == [0.9, 0.5, 0.2]
    assert known.tolist() == [True, False, True]
    oracle.observe([9], [16], [0])
    oracle.end_epoch()
    assert oracle.estimate([9])[0] == 0.9
    oracle.set([7], [0.1])
    assert not oracle.estimate([9])[1]
    oracle.load_state_dict(oracle.state_dict())
    assert oracle.estimate([7])[0] == 0.1


@pytest.mark.parametrize("p", [[0.5], [0.5, 1.1], [0.5, float("nan")]])
def test_bad_probabilities(p):
    with pytest.raises(ValueError, match="the oracle gave"):
        Oracle().set([1, 2], p)
    with pytest.raises(ValueError, match="the oracle gave"):
        Oracle(lambda ids: p).estimate([1, 2])


def test_pilot():
    np.testing.assert_array_equal(pilot_estimate([0, 1, 4, 8], 8), [1 / 16, 1 / 8, 1 / 2, 15 / 16])
    with pytest.raises(ValueError, match="at least 1"):
        pilot_estimate([0], 0)
    with pytest.raises(ValueError, match="between 0 and 8"):
        pilot_estimate([9], 8)
