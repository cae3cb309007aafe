import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from waterline.policies.maze_transformer import maze_transformer  # noqa: E402

SMALL = {"hidden_size": 32, "layers": 2, "heads": 2, "kv_heads": 1, "ffn": 64}


def test_the_papers_model() -> None:
    model = maze_transformer()
    assert sum(p.numel() for p in model.parameters()) == 3_944_704
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    config = model.config
    assert config.model_type == "qwen2"
    assert (config.num_attention_heads, config.num_key_value_heads) == (4, 2)
    assert config.max_position_embeddings == 512
    assert config.rope_parameters["rope_theta"] == 1e6
    assert config.rms_norm_eps == 1e-6
    assert config.hidden_act == "silu"
    assert config.attention_dropout == 0
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert model.model.layers[0].self_attn.q_proj.bias is not None
    assert model.generation_config.eos_token_id == [2, 7]
    assert model.generation_config.pad_token_id == 0
    assert model.get_input_embeddings().weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(1)
    a = maze_transformer(**SMALL, seed=3)
    after = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), after)
    torch.manual_seed(2)
    b, c = maze_transformer(**SMALL, seed=3), maze_transformer(**SMALL, seed=4)
    assert all(torch.equal(x, b.state_dict()[name]) for name, x in a.state_dict().items())
    key = "model.embed_tokens.weight"
    assert not torch.equal(a.state_dict()[key], c.state_dict()[key])


@pytest.mark.parametrize(
    "sizes", [{"heads": 3}, {"hidden_size": 30, "heads": 10}, {"heads": 4, "kv_heads": 3}]
)
def test_sizes_that_do_not_fit_are_one_sentence(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"heads=.* does not fit"):
        maze_transformer(**{**SMALL, **sizes})
