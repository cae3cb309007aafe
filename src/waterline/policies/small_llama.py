"""A model of SmolLM2's architecture, small enough to be trained on a laptop."""

from typing import TYPE_CHECKING

from waterline.policies.fresh import check_heads, fresh
from waterline.runs.settings import Seed, Whole, checked

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM


@checked
def small_llama(
    vocabulary: Whole,
    hidden_size: Whole = 96,
    layers: Whole = 3,
    heads: Whole = 6,
    kv_heads: Whole = 2,
    ffn: Whole = 256,
    max_positions: Whole = 512,
    seed: Seed = 0,
) -> "LlamaForCausalLM":
    """A randomly initialised Llama model in float32, as SmolLM2 is one.

    Tied embeddings, grouped keys and values, RMSNorm ε = 10⁻⁵, no biases, as in SmolLM2; the
    rotary base is 10⁴. The weights depend on ``seed`` alone, and torch's random state is left as it
    was.

    Raises ValueError when ``heads`` does not divide ``hidden_size``, gives an odd head dimension,
    or is not a multiple of ``kv_heads``.
    """
    check_heads(hidden_size, heads, kv_heads)
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=hidden_size, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, intermediate_size=ffn,
        max_position_embeddings=max_positions, rms_norm_eps=1e-5, initializer_range=0.02,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}, tie_word_embeddings=True,
        pad_token_id=0, bos_token_id=2, eos_token_id=3, dtype="float32",
    )  # fmt: skip
    return fresh(LlamaForCausalLM, config, seed)
