"""Tiny random models, and the plain forward pass that packed rows are held against."""

import copy

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from waterline.policies import SharedPrefixLM

VOCABULARY = 23
_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    # Large weights, so that a wrong key moves the result far beyond rounding.
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def tiny(name: str = "qwen2", kv_heads: int = 2) -> PreTrainedModel:
    grouped = {**_COMMON, "num_key_value_heads": kv_heads}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if name == "qwen2":
            model = Qwen2ForCausalLM(Qwen2Config(**grouped))
        elif name == "llama":
            model = LlamaForCausalLM(LlamaConfig(**grouped))
        elif name == "qwen3":
            model = Qwen3ForCausalLM(Qwen3Config(**grouped, head_dim=16))
        elif name == "mistral":
            model = MistralForCausalLM(MistralConfig(**grouped, sliding_window=None))
        elif name == "gpt_neox":
            model = GPTNeoXForCausalLM(GPTNeoXConfig(**_COMMON))
        else:  # learned absolute positions
            config = GPT2Config(
                vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=256,
                bos_token_id=1, eos_token_id=2,
                initializer_range=0.3, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            )  # fmt: skip
            model = GPT2LMHeadModel(config)
    return model.eval()


def pair(name: str = "qwen2", kv_heads: int = 2) -> tuple[PreTrainedModel, SharedPrefixLM]:
    """The same weights twice: a plain model and the policy."""
    model = tiny(name, kv_heads)
    plain = copy.deepcopy(model)
    plain.set_attn_implementation("eager")
    return plain, SharedPrefixLM(model)


def plain_logp(
    model: PreTrainedModel, tokens: torch.Tensor, temperature: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities (L − 1,) of ``tokens`` (L,) after the first, and entropies, by autograd."""
    logits = model(input_ids=tokens.unsqueeze(0), use_cache=False).logits[0, :-1].float()
    log_probs = (logits / temperature).log_softmax(-1)
    logp = log_probs.gather(1, tokens[1:, None])[:, 0]
    return logp, -(log_probs.exp() * log_probs).sum(-1)


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
