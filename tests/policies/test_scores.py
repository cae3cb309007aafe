"""Scores from chunks of logits, and attention without kept probabilities, against the plain way."""

import copy

import pytest
import torch
from transformers import Gemma2Config, Gemma2ForCausalLM, GraniteConfig, GraniteForCausalLM

import waterline.policies.tree_attention as tree_attention
from policies.models import VOCABULARY, tiny
from policies.test_packed_rows import batch, compare
from waterline.policies import SharedPrefixLM
from waterline.policies.scores import token_scores


def scored(rows, entropy_grad, tau=0.7, seed=0):
    """Scores and gradients for 11 states, 40 tokens and a vocabulary of 13, in float64."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(11, 5, dtype=torch.float64, generator=generator, requires_grad=True)
    weight = torch.randn(13, 5, dtype=torch.float64, generator=generator, requires_grad=True)
    which = torch.randint(0, 11, (40,), generator=generator)
    target = torch.randint(0, 13, (40,), generator=generator)
    logp, spread = token_scores(
        lambda h: h @ weight.T, hidden, which, target, rows=rows, temperature=tau, entropy=True,
        entropy_grad=entropy_grad,
    )  # fmt: skip
    pull = torch.randn(2, 40, dtype=torch.float64, generator=generator)
    (pull[0] * logp + (pull[1] * spread if entropy_grad else 0)).sum().backward()
    return logp.detach(), spread.detach(), hidden.grad, weight.grad, (hidden, weight, which, target)


@pytest.mark.parametrize("entropy_grad", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 3, 10, 11])
def test_chunks_give_the_scores_and_gradients_of_the_whole(rows, entropy_grad):
    logp, spread, *gradients, (hidden, weight, which, target) = scored(rows, entropy_grad)
    log_probs = ((hidden @ weight.T) / 0.7).log_softmax(-1)
    torch.testing.assert_close(logp, log_probs[which, target].detach())
    torch.testing.assert_close(spread, -(log_probs.exp() * log_probs).sum(-1)[which].detach())
    for found, whole in zip(gradients, scored(11, entropy_grad)[2:4], strict=True):
        torch.testing.assert_close(found, whole)


def test_entropies_without_a_gradient_carry_none():
    hidden = torch.randn(6, 5, requires_grad=True)
    for rows in (2, 6):
        _, spread = token_scores(
            lambda h: 2 * h, hidden, torch.arange(6), torch.zeros(6, dtype=torch.int64), rows=rows,
            entropy=True, entropy_grad=False,
        )  # fmt: skip
        total = spread.sum()
        if total.requires_grad:  # the scores of a chunk come together
            total.backward()
            assert not hidden.grad.any()


def with_small_chunks(model):
    return SharedPrefixLM(copy.deepcopy(model), logits_at_once=7 * VOCABULARY)


@pytest.mark.parametrize("name", ["qwen2", "llama", "gpt_neox", "gpt2"])
def test_a_model_with_small_chunks_equals_repeated_prompts(name):
    model = tiny(name)
    plain = copy.deepcopy(model)
    plain.set_attn_implementation("eager")
    compare(plain, with_small_chunks(model), temperature=0.7)


def test_what_a_model_does_to_its_logits_is_done_to_chunks():
    """Granite divides them, Gemma 2 caps them, and both tie the head to the embedding."""
    common = {
        "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "initializer_range": 0.3, "tie_word_embeddings": True,
    }  # fmt: skip
    capped = {"attn_logit_softcapping": None, "final_logit_softcapping": 2.0, "head_dim": 8}
    torch.manual_seed(0)
    for model in (
        GraniteForCausalLM(GraniteConfig(**common, logits_scaling=3.0)),
        Gemma2ForCausalLM(Gemma2Config(**common, **capped, layer_types=["full_attention"] * 2)),
    ):
        plain = copy.deepcopy(model.eval())
        plain.set_attn_implementation("eager")
        compare(plain, with_small_chunks(model))


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_attention_that_keeps_no_probabilities_is_the_same(kv_heads, monkeypatch):
    monkeypatch.setattr(tree_attention, "_PROBABILITIES", 0)
    model = tiny("llama", kv_heads)
    plain = copy.deepcopy(model)
    plain.set_attn_implementation("eager")
    compare(plain, SharedPrefixLM(model))


def test_sampled_tokens_do_not_depend_on_the_size_of_chunks():
    """The engine takes its logits by chunks as well."""
    row, *_ = batch([2, 3], [5, 8])
    model = tiny()
    whole, parts = SharedPrefixLM(copy.deepcopy(model)), with_small_chunks(model)
    a, b = whole.head(whole.prefill(row)[0]), parts.head(parts.prefill(row)[0])
    assert a.equal(b)
