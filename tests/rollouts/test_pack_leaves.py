"""Rows for the update: any token budget gives the values and gradients of the unrolled paths."""

import numpy as np
import pytest
import torch

from policies.models import VOCABULARY, gradients, pair, plain_logp, tiny
from waterline.policies import SharedPrefixLM
from waterline.rollouts import Kind, Rollouts, pack_leaves


def tree(seed: int = 0) -> Rollouts:
    """Prompts with 0, 1, 2, 7 and 64 responses; some go on with an observation and two branches."""
    rng = np.random.default_rng(seed)

    def spans(n: int, low: int = 1) -> list[np.ndarray]:
        return [rng.integers(0, VOCABULARY, rng.integers(low, 20)) for _ in range(n)]

    table = Rollouts.from_prompts([5, -7, 2**62, 0, 1], spans(5))
    parent = np.repeat(np.arange(5), [0, 1, 2, 7, 64])
    table = table.grown(parent, spans(len(parent)), Kind.MODEL)
    turns = np.array([5, 6, 8, 9, 20])
    observations = spans(len(turns))
    observations[2] = observations[2][:0]  # an observation without text
    table = table.observed(turns, observations)
    last = np.arange(len(table) - len(turns), len(table))
    return table.grown(np.repeat(last, [2, 1, 2, 0, 3]), spans(8), Kind.MODEL)


def unrolled(table: Rollouts, leaf: int) -> tuple[np.ndarray, np.ndarray]:
    """The path's tokens and which of them the model sampled."""
    path = table.path(leaf)
    tokens = np.concatenate([table.span(n) for n in path])
    model = [np.full(len(table.span(n)), table.kind[n] == Kind.MODEL) for n in path]
    return tokens, np.concatenate(model)


@pytest.mark.parametrize("max_tokens", [1, 60, 200, 100_000])
def test_every_budget_equals_the_unrolled_paths(max_tokens: int) -> None:
    table = tree()
    leaves = table.leaf_nodes()
    weight = np.random.default_rng(1).normal(size=len(leaves))
    model, policy = pair()
    expected = {}
    for leaf, w in zip(leaves.tolist(), weight, strict=True):
        tokens, sampled = unrolled(table, leaf)
        values = plain_logp(model, torch.from_numpy(tokens))[0][torch.from_numpy(sampled[1:])]
        expected[leaf] = values.detach()
        (w * values.sum()).backward()
    seen, rows = [], 0
    for packed in pack_leaves(table, leaves, max_tokens):
        rows += 1
        values = packed.unrolled(policy(packed.row)[0])
        assert packed.row.length <= max_tokens or len(packed.leaf) == 1
        assert packed.index.shape == packed.mask.shape == values.shape
        for r, i in enumerate(packed.leaf.tolist()):
            seen.append(i)
            mine = values[r][packed.mask[r]]
            torch.testing.assert_close(mine, expected[int(leaves[i])], atol=2e-4, rtol=2e-5)
        w = torch.from_numpy(weight[packed.leaf]).float()[:, None]
        (w * packed.mask * values).sum().backward()
    assert sorted(seen) == list(range(len(leaves)))
    assert (rows == 1) == (max_tokens == 100_000)
    left, right = gradients(policy.model), gradients(model)
    scale = max(g.abs().max() for g in right.values())
    for name in right:
        assert (left[name] - right[name]).abs().max() < 3e-5 * scale, name


def test_a_chosen_leaf_subset_and_order_is_respected() -> None:
    table = tree()
    leaves = table.leaf_nodes()[::-3]
    for packed in pack_leaves(table, leaves, 150):
        for r, i in enumerate(packed.leaf.tolist()):
            tokens, sampled = unrolled(table, int(leaves[i]))
            targets = packed.row.target[packed.index[r]][packed.mask[r]]
            assert targets.tolist() == tokens[sampled].tolist()


def test_paths_without_a_sampled_token_have_an_empty_mask() -> None:
    policy = SharedPrefixLM(tiny())
    table = Rollouts.from_prompts([0], [[1, 2]])
    table = table.grown(np.array([0]), [np.zeros(0, np.int64)], Kind.MODEL)
    table = table.observed(np.array([0]), [np.array([3])])
    (packed,) = pack_leaves(table, table.leaf_nodes(), 100)
    assert packed.mask.shape == (2, 1)
    assert not packed.mask.any()
    assert (packed.unrolled(policy(packed.row)[0]) == 0).all()
    assert list(pack_leaves(table, np.zeros(0, np.int64), 100)) == []
