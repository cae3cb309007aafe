"""From logits and uniforms to tokens, against plain references."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from waterline.rollouts import SamplingParams
from waterline.rollouts.sampling import Diverged, invert, kept_probabilities

ONE = float(np.nextafter(1.0, 0.0))
WEIGHTS = st.lists(st.sampled_from([0.0, 1e-40, 1e-9, 0.1, 0.3, 1.0, 7.0]), min_size=1, max_size=12)


@given(WEIGHTS.filter(any), st.one_of(st.sampled_from([0.0, ONE]), st.floats(0, ONE)))
def test_invert_is_the_inverse_of_the_cumulative_distribution(
    weights: list[float], uniform: float
) -> None:
    probs = torch.tensor([weights], dtype=torch.float64)
    token = int(invert(probs, torch.tensor([uniform], dtype=torch.float64)))
    assert weights[token] > 0
    below, total = sum(weights[:token]), sum(weights)
    assert below <= uniform * total * (1 + 1e-15)
    assert uniform * total <= (below + weights[token]) * (1 + 1e-15)


def test_the_ends_of_the_unit_interval_never_draw_a_token_without_mass() -> None:
    probs = torch.tensor([[0.0, 0.0, 0.25, 0.0, 0.75, 0.0]], dtype=torch.float32)
    uniform = torch.tensor([0.0, 0.25 - 1e-12, 0.25, ONE], dtype=torch.float64)
    assert invert(probs.expand(4, -1), uniform).tolist() == [2, 2, 4, 4]


def test_probabilities_that_are_not_finite_are_a_sentence() -> None:
    for bad in (float("nan"), float("inf")):
        with pytest.raises(Diverged, match="not finite; check the weights"):
            invert(torch.tensor([[0.5, bad]]), torch.zeros(1, dtype=torch.float64))


def reference(logits: np.ndarray, top_k: int, top_p: float, temperature: float) -> np.ndarray:
    scaled = logits.astype(np.float64) / temperature
    probs = np.exp(scaled - scaled.max())
    probs /= probs.sum()
    kept = np.zeros_like(probs)
    order = sorted(range(len(probs)), key=lambda i: -probs[i])[: top_k or None]
    mass, total = 0.0, probs[order].sum()
    for i in order:
        if mass >= top_p * total:
            break
        kept[i] = probs[i]
        mass += probs[i]
    return kept / kept.sum()


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
@pytest.mark.parametrize(
    ("top_k", "top_p"), [(0, 1.0), (1, 1.0), (5, 1.0), (100, 1.0), (0, 0.9), (0, 1e-6), (7, 0.5)]
)
def test_temperature_top_k_and_top_p(temperature: float, top_k: int, top_p: float) -> None:
    logits = np.random.default_rng(0).normal(0, 3, (40, 29)).astype(np.float32)
    params = SamplingParams(key=0, max_tokens=1, temperature=temperature, top_k=top_k, top_p=top_p)
    log_probs = (torch.from_numpy(logits) / temperature).log_softmax(-1)
    probs = kept_probabilities(log_probs, params)
    probs = (probs / probs.sum(-1, keepdim=True)).numpy()
    expected = np.stack([reference(row, top_k, top_p, temperature) for row in logits])
    np.testing.assert_array_equal(probs > 0, expected > 0)
    np.testing.assert_allclose(probs, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"max_tokens": 0}, "allow at least one token"),
        ({"temperature": 0.0}, "must be above 0"),
        ({"temperature": float("nan")}, "must be above 0"),
        ({"top_p": 0.0}, r"must be in \(0, 1\]"),
        ({"top_p": 1.5}, r"must be in \(0, 1\]"),
        ({"top_k": -1}, "must be 0"),
    ],
)
def test_bad_parameters_are_sentences(wrong: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        SamplingParams(**{"key": 0, "max_tokens": 4, **wrong})
