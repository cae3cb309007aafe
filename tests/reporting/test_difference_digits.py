import numpy as np
import pytest

from waterline.evaluation import Estimate
from waterline.reporting.render import difference_lines

UNMEASURED = (np.nan, np.nan)


def lines(value, interval):
    grid = difference_lines("A − B", [Estimate(value, interval, UNMEASURED, 1)])
    return [line[2] for line in grid]


@pytest.mark.parametrize(
    ("value", "interval", "shown"),
    [
        (0.003, (0.001, 0.006), ["+0.003", "[+0.001, +0.006]", "–", "ahead"]),
        (-0.3, (-0.6, -0.02), ["−0.30", "[−0.60, −0.02]", "–", "behind"]),
        (0.003, (-0.001, 0.006), ["+0.00", "[+0.0, +0.0]", "–", "within noise"]),
        (2.5, (1.25, 3.5), ["+2.50", "[+1.2, +3.5]", "–", "ahead"]),
        (1e-9, (1e-10, 2e-9), ["+0.00", "[+0.0, +0.0]", "–", "within noise"]),
        (0.0, (0.0, 0.0), ["+0.00", "[+0.0, +0.0]", "–", "within noise"]),
    ],
)
def test_a_verdict_can_be_read_off_the_digits(value, interval, shown):
    assert lines(value, interval) == shown
