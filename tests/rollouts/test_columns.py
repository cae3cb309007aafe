"""Token columns against values computed leaf by leaf, each path unrolled by itself."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from policies.models import VOCABULARY, pair, plain_logp, tiny
from waterline.policies import SharedPrefixLM
from waterline.rollouts import ColumnPass, Kind, Ranks, Rollouts, pack_leaves

TEMPERATURE = 0.8


def tree() -> Rollouts:
    """Trees of depth three: responses, observations after some, one without text, two branches."""
    rng = np.random.default_rng(4)

    def spans(n):
        return [rng.integers(0, VOCABULARY, rng.integers(1, 9)) for _ in range(n)]

    def turn(table, parent):
        drawn = spans(len(parent))
        logp = [rng.normal(size=len(s)).astype(np.float32) for s in drawn]
        sample = np.arange(len(parent))
        return table.grown(np.array(parent), drawn, Kind.MODEL, sample=sample, logp=logp)

    table = turn(Rollouts.from_prompts([5, -7, 0], spans(3)), [0, 0, 1, 2, 2, 2])
    observations = spans(3)
    observations[1] = observations[1][:0]
    table = table.observed(np.array([3, 5, 8]), observations)
    first = len(table) - 3
    return turn(table, [first, first, first + 1, first + 2, first + 2])


def leaf_by_leaf(model, table, leaf):
    """Log-probabilities and entropies of the model tokens of one path, by the plain model."""
    path = table.path(leaf)
    tokens = torch.from_numpy(np.concatenate([table.span(n) for n in path]))
    sampled = np.concatenate(
        [np.full(len(table.span(n)), table.kind[n] == Kind.MODEL) for n in path]
    )
    with torch.no_grad():
        logp, entropy = plain_logp(model, tokens, TEMPERATURE)
    chosen = torch.from_numpy(sampled[1:])
    return logp[chosen], entropy[chosen]


def places(table, leaf):
    """Where the model tokens of a path stand in the table's tokens."""
    ranges = [
        np.arange(table.start[n], table.stop[n])
        for n in table.path(leaf)
        if table.kind[n] == Kind.MODEL
    ]
    return np.concatenate(ranges)


@pytest.mark.parametrize("max_tokens", [1, 40, 100_000])
def test_columns_are_those_of_the_unrolled_paths(max_tokens):
    plain, policy = pair()
    reference = tiny("llama")
    frozen = SharedPrefixLM(tiny("llama"))
    reference.set_attn_implementation("eager")
    table, seen = tree(), []
    leaves = table.leaf_nodes()
    assert max(len(table.path(leaf)) for leaf in leaves.tolist()) == 4
    passed = ColumnPass(policy, frozen, TEMPERATURE, Ranks())
    names = ("old_logp", "entropy", "ref_logp")
    rows = list(pack_leaves(table, leaves, max_tokens))
    assert (len(rows) == 1) == (max_tokens == 100_000)
    filled = passed.fill(table, rows, names, lambda *row: seen.append(row))
    touched = np.zeros(len(table.tokens), dtype=bool)
    for leaf in leaves.tolist():
        where = places(table, leaf)
        touched[where] = True
        logp, entropy = leaf_by_leaf(plain, table, leaf)
        held, _ = leaf_by_leaf(reference, table, leaf)
        for name, expected in (("old_logp", logp), ("entropy", entropy), ("ref_logp", held)):
            np.testing.assert_allclose(filled.columns[name][where], expected, atol=2e-4)
    for name in names:
        assert filled.columns[name].dtype == np.float32
        assert np.isnan(filled.columns[name][~touched]).all(), "prompts and observations"
    # What was sampled, and the table before, are left alone.
    assert filled.columns["sampled_logp"] is table.columns["sampled_logp"]
    assert table.columns.keys() == {"sampled_logp"}
    # The pass hands on what it computes, row by row.
    assert [row for row, *_ in seen] == rows
    for row, logp, entropy in seen:
        mask = row.mask
        for values, name in ((logp, "old_logp"), (entropy, "entropy")):
            assert torch.equal(values[mask], row.gathered(filled.columns[name])[mask])


@pytest.mark.parametrize("max_tokens", [1, 40, 100_000])
def test_a_row_gathers_a_column_along_the_paths_of_its_leaves(max_tokens):
    table = tree()
    leaves = table.leaf_nodes()[::-1]
    column = np.arange(len(table.tokens), dtype=np.float32)
    met = []
    for row in pack_leaves(table, leaves, max_tokens):
        gathered = row.gathered(column)
        sampled = row.gathered(table.columns["sampled_logp"])
        assert gathered.shape == row.mask.shape
        for r, i in enumerate(row.leaf.tolist()):
            leaf = int(leaves[i])
            met.append(leaf)
            assert gathered[r][row.mask[r]].tolist() == places(table, leaf).tolist()
            own = [table.sampled_logp(n) for n in table.path(leaf) if table.kind[n] == Kind.MODEL]
            assert sampled[r][row.mask[r]].tolist() == np.concatenate(own).tolist()
    assert sorted(met) == sorted(leaves.tolist())


def test_a_column_alone_takes_one_pass_of_its_own_policy():
    _, policy = pair()
    frozen, table, calls = SharedPrefixLM(tiny()), tree(), []
    policy.register_forward_pre_hook(lambda *_: calls.append("policy"))
    frozen.register_forward_pre_hook(lambda *_: calls.append("reference"))
    passed = ColumnPass(policy, frozen, TEMPERATURE, Ranks())

    def fill(*names):
        calls.clear()
        rows = pack_leaves(table, table.leaf_nodes(), 100_000)
        columns = passed.fill(table, rows, names, lambda *_: None).columns
        assert columns.keys() == {"sampled_logp", *names}
        return list(calls)

    assert fill("entropy") == ["policy"]
    assert fill("old_logp") == ["policy"]
    assert fill("old_logp", "entropy") == ["policy"]
    assert fill("ref_logp") == ["reference"]
    assert fill("ref_logp", "entropy") == ["policy", "reference"]


def test_no_rows_leave_columns_without_a_value():
    _, policy = pair()
    passed = ColumnPass(policy, None, TEMPERATURE, Ranks())
    filled = passed.fill(tree(), [], ("entropy",), lambda *_: None)
    assert np.isnan(filled.columns["entropy"]).all()
    nothing = Rollouts.from_prompts([], [])
    assert len(passed.fill(nothing, [], ("entropy",), lambda *_: None).columns["entropy"]) == 0


def test_a_pass_has_no_gradient_and_columns_may_be_filled_again():
    _, policy = pair()
    table = tree()
    passed = ColumnPass(policy, None, TEMPERATURE, Ranks())
    rows = list(pack_leaves(table, table.leaf_nodes(), 100))

    def without_gradient(row, logp, entropy):
        assert [logp.requires_grad, entropy.requires_grad] == [False, False]

    once = passed.fill(table, rows, ("entropy",), without_gradient)
    stale = replace(once, columns={**once.columns, "entropy": once.columns["entropy"] + 1})
    again = passed.fill(stale, rows, ("entropy",), without_gradient)
    np.testing.assert_array_equal(again.columns["entropy"], once.columns["entropy"])


def test_columns_that_cannot_be_computed_are_sentences():
    _, policy = pair()
    table = tree()
    passed = ColumnPass(policy, None, TEMPERATURE, Ranks())
    rows = list(pack_leaves(table, table.leaf_nodes(), 100))
    with pytest.raises(ValueError, match="no token column 'value': choose among old_logp"):
        passed.fill(table, rows, ("value",), lambda *_: None)
    with pytest.raises(ValueError, match="'ref_logp' needs a reference policy"):
        passed.fill(table, rows, ("ref_logp",), lambda *_: None)
