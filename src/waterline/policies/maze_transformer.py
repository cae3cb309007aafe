"""The small transformer of the maze experiments."""

from typing import TYPE_CHECKING

from waterline.policies.fresh import check_heads, fresh
from waterline.runs.settings import Seed, Whole, checked

if TYPE_CHECKING:
    from transformers import Qwen2ForCausalLM


@checked
def maze_transformer(
    hidden_size: Whole = 256,
    layers: Whole = 4,
    heads: Whole = 4,
    kv_heads: Whole = 2,
    ffn: Whole = 1024,
    vocabulary: Whole = 32,
    max_positions: Whole = 512,
    seed: Seed = 0,
) -> "Qwen2ForCausalLM":
    """A randomly initialised Qwen2 model over the 32 tokens of the maze language, in float32.

    The defaults are the model of MaxRL and SERA: 3,944,704 parameters, rotary base 10⁶, RMSNorm
    ε = 10⁻⁶, tied embeddings, no dropout, initial standard deviation 0.02. Generation stops at DONE
    (7) and ``<eos>`` (2). The weights depend on ``seed`` alone, and torch's random state is left as
    it was.

    Raises ValueError when ``heads`` does not divide ``hidden_size``, gives an odd head dimension,
    or is not a multiple of ``kv_heads``.
    """
    check_heads(hidden_size, heads, kv_heads)
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        intermediate_size=ffn,
        max_position_embeddings=max_positions,
        hidden_act="silu",
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        attention_dropout=0.0,
        initializer_range=0.02,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=[2, 7],
        dtype="float32",
    )
    return fresh(Qwen2ForCausalLM, config, seed)
