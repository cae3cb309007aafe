"""Sampled labels: the distribution, and what a sample does not depend on."""

import numpy as np
import pytest

from waterline.rollouts import Labels, LabelSampler
from waterline.rollouts import labels as labels_module
from waterline.runs import uniforms

KEY = 12_345
IDS = np.array([40, -7, 2**60, 3])
ALMOST_ONE = 1 - 2.0**-53  # the largest uniform


def distributions(images, classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(classes), images)


def sample(probability, ids, counts, first=0, key=KEY):
    counts = np.asarray(counts)
    return LabelSampler().sample(probability, ids, counts, first + np.zeros_like(counts), key)


def groups(drawn, images):
    return [drawn.label[drawn.row == q].tolist() for q in range(images)]


def test_a_label_is_the_inverse_of_the_cumulative_distribution():
    probability, counts, first = distributions(4, 5), [3, 0, 8, 5], np.array([0, 2, 7, 1])
    drawn = LabelSampler().sample(probability, IDS, np.array(counts), first, KEY)
    assert drawn.row.tolist() == [0] * 3 + [2] * 8 + [3] * 5
    expected = []
    for q, n in enumerate(counts):
        for i in range(n):
            u = float(uniforms(KEY, [IDS[q]], [first[q] + i], 0)[0, 0])
            total, label = probability[q, 0], 0
            while u >= total:
                label += 1
                total += probability[q, label]
            expected.append(label)
    assert drawn.label.tolist() == expected


@pytest.mark.parametrize("key", [1, 2, 3])
def test_frequencies_are_the_probabilities(key):
    probability = np.array([[0.5, 0.2, 0.15, 0.1, 0.05], [0.96, 0.01, 0.01, 0.01, 0.01]])
    n = 40_000
    for q, labels in enumerate(groups(sample(probability, IDS[:2], [n, n], key=key), 2)):
        expected = n * probability[q]
        chi_square = float(((np.bincount(labels, minlength=5) - expected) ** 2 / expected).sum())
        assert 0.05 < chi_square < 18.5  # the quantiles 0.0003 and 0.999 of 4 degrees of freedom


def test_later_rounds_go_on_where_the_first_one_ended():
    probability = distributions(4, 6)
    whole = sample(probability, IDS, [5, 5, 5, 5])
    first = sample(probability, IDS, [3, 3, 3, 3])
    parts, _ = first.joined(sample(probability, IDS, [2, 2, 2, 2], first=3))
    assert groups(parts, 4) == groups(whole, 4)
    assert (np.diff(parts.row) >= 0).all()
    more = sample(probability, IDS, [9, 2, 5, 7])
    for long, short in zip(groups(more, 4), groups(whole, 4), strict=True):
        n = min(len(long), len(short))
        assert long[:n] == short[:n]


def test_samples_depend_neither_on_the_rest_of_the_batch_nor_on_its_order():
    probability = distributions(4, 6)
    whole = groups(sample(probability, IDS, [6, 6, 6, 6]), 4)
    order = [2, 0, 3, 1]
    shuffled = groups(sample(probability[order], IDS[order], [6, 6, 6, 6]), 4)
    assert shuffled == [whole[q] for q in order]
    for q in range(4):
        alone = sample(probability[[q]], IDS[[q]], [6])
        assert groups(alone, 1) == [whole[q]]
    # Another id or another key draws other labels, though the distribution is the same.
    same = np.full((2, 1000), 1 / 1000)
    a, b = groups(sample(same, IDS[:2], [20, 20]), 2)
    (c,) = groups(sample(same[:1], IDS[:1], [20], key=KEY + 1), 1)
    assert a != b
    assert a != c


@pytest.mark.parametrize("uniform", [0.0, 2.0**-53, 0.5, ALMOST_ONE])
@pytest.mark.parametrize("scale", [1.0, 1 - 1e-12, 1 - 2.0**-53, 1 + 2.0**-52, 1 + 1e-12])
def test_a_class_of_probability_zero_is_never_drawn(monkeypatch, uniform, scale):
    """At the ends of the uniforms too, and where a row sums to 1 up to rounding alone."""
    monkeypatch.setattr(
        labels_module, "uniforms", lambda key, ids, *_: np.full((len(ids), 1), uniform)
    )
    probability = np.array([[0, 0.25, 0, 0.75, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 0], [0.1] * 5])
    probability[3] = [0, 1e-320, 0.7, 0.3, 0]  # the second is subnormal
    drawn = sample(probability * scale, IDS, [2, 2, 2, 2])
    assert (probability[drawn.row, drawn.label] > 0).all()
    if uniform == 0.0:
        assert drawn.label.tolist() == [1, 1, 2, 2, 0, 0, 1, 1]
    if uniform == ALMOST_ONE:
        assert drawn.label.tolist() == [3, 3, 2, 2, 0, 0, 3, 3]


def test_no_rollouts_give_no_labels():
    drawn = sample(distributions(4, 3), IDS, [0, 0, 0, 0])
    assert drawn.row.dtype == drawn.label.dtype == np.int64
    assert len(drawn.row) == len(drawn.label) == 0
    none = sample(np.empty((0, 3)), IDS[:0], np.empty(0, dtype=np.int64))
    assert len(none.label) == 0


def test_rounds_are_merged_by_image_in_the_order_of_their_samples():
    a = Labels(np.array([0, 0, 2]), np.array([5, 6, 7]))
    b = Labels(np.array([0, 1, 2]), np.array([8, 9, 4]))
    both, order = a.joined(b)
    assert both.row.tolist() == [0, 0, 0, 1, 2, 2]
    assert both.label.tolist() == [5, 6, 8, 9, 7, 4]
    # Where each stood when the second round followed the first: its judgements are joined so too.
    assert order.tolist() == [0, 1, 3, 4, 2, 5]
    assert np.concatenate([a.label, b.label])[order].tolist() == both.label.tolist()
    nothing = Labels(a.row[:0], a.label[:0])
    for one, order in (a.joined(nothing), nothing.joined(a)):
        assert (one.row.tolist(), one.label.tolist()) == ([0, 0, 2], [5, 6, 7])
        assert order.tolist() == [0, 1, 2]
