"""Packed rows against the plain model on repeated prompts."""

import numpy as np
import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from policies.models import VOCABULARY, gradients, pair, plain_logp, tiny
from waterline.policies import PackedRow, SharedPrefixLM, pack_segments

COUNTS = [0, 1, 2, 7, 64]
PROMPTS = [3, 1, 20, 9, 41]  # tokens


def batch(counts: list[int], prompts: list[int]) -> tuple[PackedRow, list[torch.Tensor], list[int]]:
    """A row of uneven groups, and the same as whole sequences with their prompts' lengths."""
    rng = np.random.default_rng(0)
    parent, segments, predicted, sequences, starts = [], [], [], [], []
    for count, length in zip(counts, prompts, strict=True):
        prompt = rng.integers(0, VOCABULARY, length)
        root = len(segments)
        parent.append(-1)
        segments.append(prompt)
        predicted.append(False)
        for _ in range(count):
            response = rng.integers(0, VOCABULARY, rng.choice([1, 2, 5, 16, 17, 40]))
            parent.append(root)
            segments.append(response)
            predicted.append(True)
            sequences.append(torch.from_numpy(np.concatenate([prompt, response])))
            starts.append(length)
    return pack_segments(np.array(parent), segments, np.array(predicted)), sequences, starts


def plain(model, sequences, starts, temperature=1.0):
    parts = [plain_logp(model, s, temperature) for s in sequences]
    logp = torch.cat([p[0][n - 1 :] for p, n in zip(parts, starts, strict=True)])
    return logp, torch.cat([p[1][n - 1 :] for p, n in zip(parts, starts, strict=True)])


def assert_same_gradients(a: torch.nn.Module, b: torch.nn.Module) -> None:
    left, right = gradients(a), gradients(b)
    assert left.keys() == right.keys()
    scale = max(g.abs().max() for g in right.values())
    assert scale > 0
    for name in left:
        assert (left[name] - right[name]).abs().max() < 2e-5 * scale, name


def compare(model, policy: SharedPrefixLM, counts=COUNTS, prompts=PROMPTS, temperature=1.0) -> None:
    row, sequences, starts = batch(counts, prompts)
    logp, entropy = policy(row, temperature=temperature, entropy=True)
    expected, expected_entropy = plain(model, sequences, starts, temperature)
    torch.testing.assert_close(logp, expected, atol=2e-4, rtol=2e-5)
    torch.testing.assert_close(entropy, expected_entropy, atol=2e-4, rtol=2e-5)
    weight = torch.randn(len(logp), generator=torch.Generator().manual_seed(1))
    (weight * logp + 0.1 * entropy).sum().backward()
    (weight * expected + 0.1 * expected_entropy).sum().backward()
    assert_same_gradients(policy.model, model)


@pytest.mark.parametrize("name", ["qwen2", "llama", "qwen3", "mistral", "gpt_neox", "gpt2"])
def test_uneven_groups_equal_repeated_prompts(name: str) -> None:
    compare(*pair(name))


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_grouped_query_attention(kv_heads: int) -> None:
    compare(*pair("qwen2", kv_heads), counts=[2, 3], prompts=[5, 8], temperature=0.7)


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_changes_nothing(reentrant: bool) -> None:
    model, policy = pair()
    policy.train()
    policy.model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    if reentrant:
        policy.model.enable_input_require_grads()
    assert policy.model.is_gradient_checkpointing
    compare(model, policy, counts=[0, 1, 7], prompts=[4, 6, 30])


def test_one_thread_or_two_give_the_same_bits_each_time() -> None:
    row, _, _ = batch(COUNTS, PROMPTS)
    threads = torch.get_num_threads()
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            seen = []
            for _ in range(3):
                policy = SharedPrefixLM(tiny())
                policy(row)[0].sum().backward()
                seen.append(torch.cat([g.flatten() for g in gradients(policy).values()]))
            assert all(torch.equal(seen[0], other) for other in seen[1:])
    finally:
        torch.set_num_threads(threads)


def test_depth_three_tree_equals_its_unrolled_paths() -> None:
    # prompt → model → observation → model, with branches at every level and two roots.
    model, policy = pair()
    rng = np.random.default_rng(3)
    parent = np.array([-1, 0, 0, 1, 1, 3, 3, 3, 4, -1, 9, 2])
    kind = "pmmoommmmpmm"
    segments = [rng.integers(0, VOCABULARY, rng.integers(1, 25)) for _ in parent]
    predicted = np.array([k == "m" for k in kind])
    row = pack_segments(parent, segments, predicted)
    logp, _ = policy(row)
    per_segment = dict(
        zip(
            np.flatnonzero(predicted).tolist(),
            logp.split([len(segments[s]) for s in np.flatnonzero(predicted)]),
            strict=True,
        )
    )
    total, expected_total = logp.new_zeros(()), logp.new_zeros(())
    for leaf in sorted(set(range(len(parent))) - set(parent.tolist())):
        path = row.layout.ancestry(leaf)
        values, _ = plain_logp(model, torch.from_numpy(np.concatenate([segments[s] for s in path])))
        first = 0
        for s in path:
            if predicted[s]:
                expected = values[first - 1 : first - 1 + len(segments[s])]
                torch.testing.assert_close(per_segment[s], expected, atol=2e-4, rtol=2e-5)
                total = total + (leaf + 1) * per_segment[s].sum()
                expected_total = expected_total + (leaf + 1) * expected.sum()
            first += len(segments[s])
    total.backward()
    expected_total.backward()
    assert_same_gradients(policy.model, model)


def test_a_row_that_predicts_nothing_has_zero_gradient() -> None:
    policy = SharedPrefixLM(tiny())
    row, _, _ = batch([0, 0], [3, 7])
    logp, entropy = policy(row, entropy=True)
    assert logp.shape == entropy.shape == (0,)
    logp.sum().backward()
    assert all((g == 0).all() for g in gradients(policy).values())


@pytest.mark.parametrize("name", ["qwen2", "qwen3"])
def test_reduced_precision_is_close(name: str) -> None:
    policy = SharedPrefixLM(tiny(name))
    half = SharedPrefixLM(tiny(name), precision="bfloat16")
    row, _, _ = batch([2, 3], [5, 8])
    full, (reduced, _) = policy(row)[0], half(row)
    assert reduced.dtype == torch.float32
    assert 0 < (full - reduced).abs().mean() < 0.2
    reduced.sum().backward()
    assert all(g.isfinite().all() for g in gradients(half).values())


def test_models_that_would_be_computed_wrongly_are_refused() -> None:
    sizes = {"vocab_size": 23, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    bloom = BloomForCausalLM(BloomConfig(vocab_size=23, hidden_size=32, n_layer=2, n_head=4))
    with pytest.raises(ValueError, match=r"BloomForCausalLM is not .* pluggable attention"):
        SharedPrefixLM(bloom)
    gemma = Gemma2ForCausalLM(Gemma2Config(**sizes, intermediate_size=32, head_dim=8))
    with pytest.raises(ValueError, match="layers of the kind sliding_attention"):
        SharedPrefixLM(gemma)
    windowed = MistralForCausalLM(MistralConfig(**sizes, intermediate_size=32, sliding_window=4))
    row, _, _ = batch([1], [5])
    with pytest.raises(ValueError, match="a sliding window"):
        SharedPrefixLM(windowed)(row)
    dropping = tiny()
    dropping.model.layers[0].self_attn.attention_dropout = 0.1
    with pytest.raises(ValueError, match="attention dropout to 0"):
        SharedPrefixLM(dropping).train()(row)
    partial = tiny()
    own = torch.nn.Identity()
    partial.model.layers[1].self_attn.forward = lambda hidden_states, **_: (
        own(hidden_states),
        None,
    )
    with pytest.raises(ValueError, match="1 of the 2 layers"):
        SharedPrefixLM(partial)(row)


def test_the_wrapped_model_cannot_be_called_past_the_policy() -> None:
    policy = SharedPrefixLM(tiny())
    with pytest.raises(ValueError, match="through SharedPrefixLM"):
        policy.model(input_ids=torch.tensor([[1, 2]]))


def test_bad_rows_and_precisions_are_sentences() -> None:
    one = np.array([1])
    with pytest.raises(ValueError, match="parent must stand before"):
        pack_segments(np.array([1, -1]), [one, one], np.array([False, False]))
    with pytest.raises(ValueError, match="no token"):
        pack_segments(np.array([-1, 0]), [one, one[:0]], np.array([False, True]))
    with pytest.raises(ValueError, match="root cannot be predicted"):
        pack_segments(np.array([-1]), [one], np.array([True]))
    with pytest.raises(ValueError, match="choose one of float32"):
        SharedPrefixLM(tiny(), precision="int8")
