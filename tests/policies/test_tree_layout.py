"""Tree layouts against their definition, on random forests."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from waterline.policies import TreeLayout


@st.composite
def forests(draw: st.DrawFn) -> TreeLayout:
    size = draw(st.integers(1, 12))
    parent = [draw(st.integers(-1, s - 1)) for s in range(size)]
    length = draw(st.lists(st.integers(1, 70), min_size=size, max_size=size))
    return TreeLayout(np.array(parent), np.array(length))


@given(forests())
def test_positions_count_the_tokens_of_the_path(layout: TreeLayout) -> None:
    for s in range(len(layout.parent)):
        path = layout.path(s)
        assert layout.positions[path].tolist() == list(range(len(path)))


@given(forests())
def test_the_arrangement_lets_each_token_see_its_path(layout: TreeLayout) -> None:
    a = layout.arrangement
    index, back, pad = a.index.numpy(), a.back.numpy(), a.pad.numpy()
    total = int(layout.length.sum())
    assert sum(a.chunks) == total
    assert (index[back] == np.arange(total)).all()
    assert not pad[back].any()
    assert pad.sum() == len(index) - total
    ends = np.cumsum(a.chunks)
    segment = np.repeat(np.arange(len(layout.length)), layout.length)
    first = 0
    for family in a.families:
        prefix = [np.arange(ends[c] - a.chunks[c], ends[c]) for c in family.prefix]
        seen = np.concatenate([*prefix, np.zeros(0, dtype=np.int64)])
        for _ in range(family.members):
            member = index[first : first + family.width][~pad[first : first + family.width]]
            path = layout.path(int(segment[member[0]]))
            assert np.concatenate([seen, member]).tolist() == path.tolist()
            # Padding stays within a factor of two.
            assert family.width <= max(32, 2 * len(member))
            first += family.width
    assert first == len(index)
