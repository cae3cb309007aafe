"""A policy that comes with its weights."""

import pytest
import torch

from training.tiny import compose
from waterline.policies.pretrained import pretrained
from waterline.policies.small_llama import small_llama
from waterline.runs import BadInput, State
from waterline.training.evaluate_run import evaluate_run
from waterline.training.run import train, train_base

TINY = (
    "task.sft=0", "task.train=8", "task.dev=4", "task.test=4", "policies@policy=pretrained",
    "policy.precision=float32", "training.batch=4", "training.steps=2",
    "allocation.n0=2", "allocation.n_max=8", "evaluation.n=2", "evaluation.every=2",
    "evaluation.ks=[1]", "advantages=maxrl", "trainer.threads=1",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("model")
    small_llama(196, hidden_size=24, layers=1, heads=2, kv_heads=1, ffn=32, seed=5).save_pretrained(
        where
    )
    return where


def test_the_weights_are_those_of_the_folder(folder):
    model = pretrained(str(folder))
    other = small_llama(196, hidden_size=24, layers=1, heads=2, kv_heads=1, ffn=32, seed=5)
    for (name, a), (_, b) in zip(model.named_parameters(), other.named_parameters(), strict=True):
        assert torch.equal(a, b), name


def test_a_run_starts_from_them_and_its_base_needs_no_training(folder, tmp_path):
    settings = (*TINY, f"policy.model.name={folder}", f"paths.results={tmp_path}")
    config = compose(*settings, experiment="smollm2/laptop") | {"supervised": None}
    base = train_base(config)
    assert base.state() is State.done
    assert not list(base.checkpoints.glob("*"))
    store = evaluate_run(base.root, split="test", n=2)
    assert store.at(0, "test")["n"].tolist() == [2] * 4
    run = train(config, compose(experiment="smollm2/laptop"))
    first = torch.load(run.checkpoints / "step-0.pt", weights_only=True)["policy"]
    for name, tensor in pretrained(str(folder)).named_parameters():
        assert torch.equal(first[f"model.{name}"], tensor)


def test_a_policy_without_weights_has_no_base_of_its_own(tmp_path):
    config = compose(f"paths.results={tmp_path}", experiment="smollm2/laptop")
    with pytest.raises(BadInput, match="no supervised start"):
        train_base(config | {"supervised": None})


@pytest.mark.parametrize("name", ["/nowhere/model", "./nowhere", "no-such/model-name"])
def test_a_model_that_is_not_there_is_a_sentence(name):
    with pytest.raises(BadInput, match=rf"policy.model.name={name}: "):
        pretrained(name)
