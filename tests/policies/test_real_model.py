"""The update of a real model of 135M parameters against plain transformers on repeated prompts."""

import pytest

from policies.test_packed_rows import compare
from training.tiny import ROOT
from waterline.policies import SharedPrefixLM
from waterline.policies.pretrained import pretrained

MODEL = ROOT / "data/smollm2-135m"
pytestmark = [
    pytest.mark.vllm,  # where its environment makes the model
    pytest.mark.skipif(not MODEL.is_dir(), reason="python data/smollm2_135m.py makes the model"),
]


def test_log_probabilities_entropies_and_gradients_are_those_of_repeated_prompts():
    plain = pretrained(name=str(MODEL)).eval()
    plain.set_attn_implementation("eager")
    policy = SharedPrefixLM(pretrained(name=str(MODEL)).eval())
    compare(plain, policy, counts=[3, 2], prompts=[40, 25], temperature=1.0)
