"""From logits and one uniform per token to tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


class Diverged(ArithmeticError):
    """The policy's probabilities are no numbers any more."""


@dataclass(frozen=True)
class SamplingParams:
    """How responses are drawn.

    Args:
        key: 64-bit key of the random stream, from the run's seed, the stage and the step.
        max_tokens: a response that reaches it finishes by length.
        stop: token ids that end a response; the stop token belongs to the response.
        temperature: divides the logits; the recorded log-probabilities are at this temperature.
        top_p, top_k: keep the smallest set of tokens with this mass, or this many tokens; 1.0 and
            0 keep all. Recorded log-probabilities are of the untruncated softmax, so training,
            which needs samples from the policy itself, must leave both off.
    """

    key: int
    max_tokens: int
    stop: Sequence[int] = ()
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"sampling max_tokens={self.max_tokens}: allow at least one token.")
        if not self.temperature > 0:
            raise ValueError(f"sampling temperature={self.temperature}: must be above 0.")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"sampling top_p={self.top_p}: must be in (0, 1].")
        if self.top_k < 0:
            raise ValueError(f"sampling top_k={self.top_k}: must be 0 (off) or positive.")


def kept_probabilities(log_probs: Tensor, params: SamplingParams) -> Tensor:
    """(R, V) probabilities, those of the tokens outside top-k and top-p set to 0.

    Not renormalised: the inversion scales its uniform by the mass that is left. top-k goes first,
    and top-p is a share of the mass that it leaves.

    Args:
        log_probs: (R, V) at the temperature.
        params: which tokens to keep.
    """
    probs = log_probs.exp()
    if params.top_k and params.top_k < probs.shape[-1]:
        kept = probs.topk(params.top_k, dim=-1)
        probs = torch.zeros_like(probs).scatter(-1, kept.indices, kept.values)
    if params.top_p < 1:
        ordered, order = probs.sort(dim=-1, descending=True, stable=True)
        mass = ordered.sum(dim=-1, keepdim=True)
        before = ordered.cumsum(dim=-1) - ordered
        ordered = ordered.masked_fill(before >= params.top_p * mass, 0.0)
        probs = torch.zeros_like(probs).scatter(-1, order, ordered)
    return probs


def invert(probs: Tensor, uniform: Tensor) -> Tensor:
    """(R,) the first token whose cumulative probability exceeds uniform × total mass.

    Args:
        probs: (R, V) non-negative.
        uniform: (R,) float64 in [0, 1).

    The sum runs in float64 in the order of the vocabulary, so that a token changes only where the
    uniform lies within rounding of a boundary. Raises :class:`Diverged` for probabilities that are
    not finite or all zero.
    """
    cumulative = probs.double().cumsum(dim=-1)
    total = cumulative[:, -1:]
    if not bool(((total > 0) & total.isfinite()).all()):
        raise Diverged(
            "sampling: the policy's next-token probabilities are not finite; check the weights, "
            "for an update may have diverged."
        )
    # Rounding may lift u·total to the total itself, beyond the last token with any mass.
    below = total.nextafter(torch.zeros_like(total))
    threshold = torch.minimum(uniform.unsqueeze(1) * total, below)
    return torch.searchsorted(cumulative, threshold, right=True).squeeze(1)
