"""The engine on vLLM against the trainer's own model, on a real model of 135M parameters.

They run where vLLM is installed and ``data/smollm2-135m`` is made: `make test-vllm`.
"""

import copy
import os
import signal

import numpy as np
import pytest
import torch

from training.tiny import ROOT
from waterline.policies import SharedPrefixLM
from waterline.policies.pretrained import pretrained
from waterline.rollouts import (
    EngineError,
    Finish,
    Rollouts,
    SamplingParams,
    SharedPrefixEngine,
    VLLMEngine,
    pack_leaves,
)
from waterline.runs import BadInput

pytest.importorskip("vllm")
MODEL = ROOT / "data/smollm2-135m"
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not MODEL.is_dir(), reason="python data/smollm2_135m.py makes the model"),
]
# In float32 the two differ by the order of additions alone: 6e-5 was the most that was seen.
TOLERANCE = 1e-3
PARAMS = SamplingParams(key=7, max_tokens=12, stop=(2,), temperature=1.0)
SMALL = {"kv_cache_gib": 0.25, "max_num_seqs": 16, "max_model_len": 128, "enforce_eager": True}


@pytest.fixture(scope="module")
def policy():
    return SharedPrefixLM(pretrained(name=str(MODEL)).eval())


@pytest.fixture(scope="module")
def table(policy):
    generator = np.random.default_rng(0)
    prompts = [generator.integers(100, 40_000, n).tolist() for n in (40, 7, 33)]
    return Rollouts.from_prompts([5, 6, 9], prompts)


@pytest.fixture(scope="module")
def engine(policy):
    made = VLLMEngine(policy, **SMALL)
    made.sync(policy.named_weights(), version=0)
    yield made
    made.close()


def sampled(engine, table, params=PARAMS, counts=(3, 0, 2)):
    grown = engine.extend(table, np.arange(3), np.array(counts), params)
    return grown, range(len(table), len(grown))


def gap(policy, grown, nodes):
    """The largest difference between the engine's log-probabilities and the trainer's."""
    most = 0.0
    for part in pack_leaves(grown, np.array(list(nodes)), 4096):
        with torch.no_grad():
            logp = part.unrolled(policy(part.row, PARAMS.temperature)[0])
        told = part.gathered(grown.columns["sampled_logp"])
        most = max(most, float((logp - told.to(logp)).abs().nan_to_num(nan=0.0).max()))
    return most


def test_the_engines_agree_before_and_after_an_update(policy, engine, table):
    grown, nodes = sampled(engine, table)
    assert len(nodes) == 5
    assert gap(policy, grown, nodes) < TOLERANCE
    changed = copy.deepcopy(policy)
    with torch.no_grad():
        for parameter in changed.parameters():
            parameter.mul_(1 + 0.02 * torch.randn(parameter.shape))
    # The prompts' keys under the old weights are in its cache, and must not be read again.
    engine.sync(changed.named_weights(), version=1)
    after, nodes = sampled(engine, table)
    assert gap(changed, after, nodes) < TOLERANCE
    assert gap(policy, after, nodes) > 10 * TOLERANCE
    assert set(after.version[list(nodes)]) == {1}
    engine.sync(policy.named_weights(), version=2)
    again, nodes = sampled(engine, table)
    assert gap(policy, again, nodes) < TOLERANCE


def test_a_sample_has_a_seed_of_its_own(policy, engine, table):
    engine.sync(policy.named_weights(), version=0)
    one, nodes = sampled(engine, table)
    two, _ = sampled(engine, table)
    spans = [one.span(n).tolist() for n in nodes]
    assert spans == [two.span(n).tolist() for n in nodes]
    assert len({tuple(span) for span in spans}) == len(spans)
    other, _ = sampled(engine, table, SamplingParams(key=8, max_tokens=12, stop=(2,)))
    assert spans != [other.span(n).tolist() for n in nodes]
    assert one.sample[list(nodes)].tolist() == [0, 1, 2, 0, 1]
    ends = one.finish[list(nodes)]
    assert all((e == Finish.STOP) == (s[-1] == 2) for e, s in zip(ends, spans, strict=True))


def test_the_same_contract_as_the_other_engine(policy, engine, table):
    own = SharedPrefixEngine(policy)
    for made in (engine, own):
        made.sync(policy.named_weights(), version=3)
        grown, nodes = sampled(made, table)
        assert grown.parent[list(nodes)].tolist() == [0, 0, 0, 2, 2]
        assert gap(policy, grown, nodes) < TOLERANCE
        with pytest.raises(ValueError, match="a count is negative"):
            made.extend(table, np.arange(3), np.array([1, -1, 0]), PARAMS)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_model_len": 10**6}, "the model has 8192 positions"),
        ({"kv_cache_gib": 0.001}, "one sequence of 128 tokens takes"),
        ({"kv_cache_gib": 10_000.0}, "GiB are free; lower it"),
    ],
)
def test_what_the_machine_cannot_carry_is_a_sentence(policy, settings, said):
    with pytest.raises(BadInput, match=said):
        VLLMEngine(policy, **{**SMALL, **settings})


def test_what_the_engine_cannot_do_is_a_sentence(policy, engine, table):
    long = SamplingParams(key=1, max_tokens=100, stop=())
    with pytest.raises(BadInput, match="max_model_len=128: a prompt of 40 tokens and"):
        sampled(engine, table, long)
    cold = SamplingParams(key=1, max_tokens=2, stop=(), temperature=0.005)
    with pytest.raises(BadInput, match=r"vLLM samples at 0\.01 or above"):
        sampled(engine, table, cold)
    engine.max_samples = 2
    with pytest.raises(BadInput, match="max_samples=2 is the limit"):
        sampled(engine, table)
    engine.max_samples = 16


def test_a_killed_engine_is_a_sentence_and_starts_again(policy, table):
    made = VLLMEngine(policy, **SMALL)
    made.sync(policy.named_weights(), version=0)
    os.kill(made.process.pid, signal.SIGKILL)
    with pytest.raises(EngineError, match="ended with exit code -9: start the same command"):
        sampled(made, table)
    made.close()
    made.sync(policy.named_weights(), version=1)
    grown, nodes = sampled(made, table)
    assert gap(policy, grown, nodes) < TOLERANCE
    made.close()
