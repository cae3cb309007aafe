"""Rollout tables on random trees, against plain walks along the parents."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterline.rollouts import Finish, Kind, Rollouts

INT64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def trees(draw: st.DrawFn) -> Rollouts:
    ids = draw(st.lists(INT64, max_size=4, unique=True))
    prompts = [draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)) for _ in ids]
    table = Rollouts.from_prompts(ids, prompts)
    for _ in range(draw(st.integers(0, 3)) if ids else 0):
        parents = np.array(draw(st.lists(st.integers(0, len(table) - 1), max_size=5)), np.int64)
        spans = [np.array(draw(st.lists(st.integers(0, 9), max_size=3)), np.int64) for _ in parents]
        if draw(st.booleans()):
            table = table.observed(parents, spans)
        else:
            logp = [np.full(len(s), -0.5, np.float32) for s in spans]
            sample = np.arange(len(parents))
            table = table.grown(parents, spans, Kind.MODEL, version=3, sample=sample, logp=logp)
    return table


@given(trees())
def test_paths_roots_leaves_and_responses(table: Rollouts) -> None:
    parents = table.parent.tolist()
    roots = table.roots()
    for node in range(len(table)):
        walk = [node]
        while parents[walk[0]] >= 0:
            walk.insert(0, parents[walk[0]])
        assert table.path(node) == walk
        assert roots[node] == walk[0]
        assert table.kind[walk[0]] == Kind.PROMPT
        assert (table.prompt[walk] == table.prompt[walk[0]]).all()
        tokens = [t for n in walk[1:] for t in table.span(n).tolist()]
        assert table.response(node).tolist() == tokens
        assert np.isnan(table.sampled_logp(node)).all() == (
            table.kind[node] != Kind.MODEL or len(table.span(node)) == 0
        )
    leaves = table.leaves()
    expected = [n for n in range(len(table)) if n not in parents and table.kind[n] != Kind.PROMPT]
    assert leaves.node.tolist() == expected
    assert leaves.tree.tolist() == [roots[n] for n in expected]
    assert leaves.group.tolist() == [table.prompt[n] for n in expected]
    assert np.isnan(leaves.reward).all()
    assert not leaves.success.any()
    assert leaves.verdict.tolist() == [""] * len(leaves)
    # Every token belongs to exactly one node.
    spans = sorted(zip(table.start.tolist(), table.stop.tolist(), strict=True))
    assert [s for s, _ in spans] == [0, *(e for _, e in spans)][: len(spans)]
    assert (spans[-1][1] if spans else 0) == len(table.tokens)
    assert all(len(column) == len(table.tokens) for column in table.columns.values())


def test_judgements_stay_with_their_leaves_as_the_table_grows() -> None:
    table = Rollouts.from_prompts([7, -3], [[1], [2]])
    two = [np.array([5]), np.array([6])]
    before = table = table.observed(np.array([0, 1]), two)
    # Success is not reward: a failure may have the higher one.
    success, reward = np.array([True, False]), np.array([0.25, 0.75])
    table = table.judged(np.array([2, 3]), success, reward, ["correct", "wrong"])
    table = table.observed(np.array([1]), [np.array([8])])
    leaves = table.leaves()
    assert leaves.node.tolist() == [2, 3, 4]
    assert leaves.group.tolist() == [7, -3, -3]
    assert leaves.success.tolist() == [True, False, False]
    np.testing.assert_array_equal(leaves.reward, [0.25, 0.75, np.nan])
    assert leaves.verdict.tolist() == ["correct", "wrong", ""]
    assert before.leaves().verdict.tolist() == ["", ""], "the table before is left alone"
    assert np.isnan(before.leaves().reward).all()


def test_prompts_may_join_after_responses() -> None:
    table = Rollouts.from_prompts([7, -3], [[1], [2]])
    logp = [np.array([-0.5], np.float32)]
    table = table.grown(np.array([0]), [np.array([5])], Kind.MODEL, sample=np.arange(1), logp=logp)
    table = table.with_prompts([2**62, 4], [[8, 9], [6]])
    assert table.prompt.tolist() == [7, -3, 7, 2**62, 4]
    assert table.parent.tolist() == [-1, -1, 0, -1, -1]
    assert table.roots().tolist() == [0, 1, 0, 3, 4]
    assert table.span(3).tolist() == [8, 9]
    assert table.leaf_nodes().tolist() == [2]
    expected = [np.nan, np.nan, -0.5, np.nan, np.nan, np.nan]
    np.testing.assert_array_equal(table.columns["sampled_logp"], expected)
    assert len(table.with_prompts([], [])) == len(table)
    with pytest.raises(ValueError, match="stands twice"):
        table.with_prompts([-3], [[1]])


def test_further_columns_grow_with_the_table() -> None:
    table = Rollouts.from_prompts([7], [[1, 2]])
    table = replace(table, columns=table.columns | {"entropy": np.array([3, 4], np.float32)})
    table = table.observed(np.array([0]), [np.array([5])])
    np.testing.assert_array_equal(table.columns["entropy"], [3, 4, np.nan])


def test_the_table_before_growth_is_left_alone() -> None:
    table = Rollouts.from_prompts([0], [[1, 2]])
    grown = table.observed(np.array([0]), [np.array([3])])
    assert (len(table), len(grown)) == (1, 2)
    assert grown.finish[1] == Finish.NONE


def test_bad_batches_are_sentences() -> None:
    with pytest.raises(ValueError, match="stands twice"):
        Rollouts.from_prompts([4, 4], [[1], [2]])
    with pytest.raises(ValueError, match="no token"):
        Rollouts.from_prompts([4, 5], [[1], []])
    with pytest.raises(ValueError, match="outside int64"):
        Rollouts.from_prompts([2**63], [[1]])
    with pytest.raises(ValueError, match="2 ids and 1 prompts"):
        Rollouts.from_prompts([4, 5], [[1]])


def test_the_length_of_a_loss_leaves_prompts_and_observations_out():
    rollouts = Rollouts.from_prompts([5], [[1, 2, 3]])
    rollouts = rollouts.grown(np.array([0]), [np.array([4, 5])], Kind.MODEL, sample=np.array([0]))
    rollouts = rollouts.observed(np.array([1]), [np.array([6, 6, 6])])
    rollouts = rollouts.grown(np.array([2]), [np.array([7])], Kind.MODEL, sample=np.array([1]))
    assert rollouts.response(3).tolist() == [4, 5, 6, 6, 6, 7]
    assert rollouts.model_length(3) == 3
