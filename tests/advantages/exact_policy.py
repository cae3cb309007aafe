"""A policy small enough to enumerate: every response, every group, exact probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

F64 = torch.float64


@dataclass(frozen=True)
class ExactPolicy:
    """Prompts 0 … B − 1, responses of one or two binary tokens, parameters shared by all prompts.

    Each token is drawn from a logit that is linear in theta and depends on the prompt and the
    tokens before it. With `early_stop` a first token of 0 ends the response.
    """

    features: Tensor  # (B, 3, D): the first token, the second after 0, the second after 1
    reward: Tensor  # (B, V)
    early_stop: bool

    @classmethod
    def build(cls, reward: list[list[float]], *, early_stop: bool = False) -> ExactPolicy:
        generator = torch.Generator().manual_seed(len(reward))
        features = torch.randn(len(reward), 3, 5, generator=generator, dtype=F64)
        return cls(features, torch.tensor(reward, dtype=F64), early_stop)

    @property
    def theta(self) -> Tensor:
        return torch.linspace(-0.8, 0.6, self.features.shape[-1], dtype=F64).requires_grad_()

    @property
    def responses(self) -> list[tuple[int, ...]]:
        if self.early_stop:
            return [(0,), (1, 0), (1, 1)]
        return [(0, 0), (0, 1), (1, 0), (1, 1)]

    @property
    def mask(self) -> Tensor:
        """(V, 2) valid tokens."""
        return torch.tensor([[True, len(y) == 2] for y in self.responses])

    def token_logp(self, theta: Tensor) -> Tensor:
        """(B, V, 2) log-probabilities; NaN behind the end of a response."""
        logit = self.features @ theta
        logp = torch.stack([logsigmoid(-logit), logsigmoid(logit)], dim=-1)
        nothing = torch.full((len(logit),), torch.nan, dtype=F64)
        rows = []
        for y in self.responses:
            second = logp[:, 1 + y[0], y[1]] if len(y) == 2 else nothing
            rows.append(torch.stack([logp[:, 0, y[0]], second], dim=-1))
        return torch.stack(rows, dim=1)

    def logp(self, theta: Tensor) -> Tensor:
        """(B, V) log-probabilities of whole responses."""
        return self.token_logp(theta).masked_fill(~self.mask, 0.0).sum(-1)

    def success(self, theta: Tensor) -> Tensor:
        """(B,) expected reward p_q(theta)."""
        return (self.logp(theta).exp() * self.reward).sum(-1)

    def gradients(self, of: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, D) gradient of `of(p_q)` for each prompt, by autograd on p_q."""
        return torch.autograd.functional.jacobian(lambda t: of(self.success(t)), self.theta)

    def scores(self) -> Tensor:
        """(B, V, D) gradient of the log-probability of each response."""
        return torch.autograd.functional.jacobian(self.logp, self.theta)


def all_groups(policy: ExactPolicy, prompt: int, n: int) -> tuple[Tensor, Tensor]:
    """Every outcome of n draws: responses (V^n, n) and their probabilities (V^n,)."""
    outcomes = torch.tensor(list(itertools.product(range(len(policy.responses)), repeat=n)))
    logp = policy.logp(policy.theta.detach())[prompt]
    return outcomes, logp[outcomes].sum(-1).exp()


def scrambled_ids(groups: int, n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Ids (groups · n,) that are neither dense nor sorted, and a random order of the rows."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randperm(groups, generator=generator) * 7_919 - 2**62
    return ids.repeat_interleave(n), torch.randperm(groups * n, generator=generator)


def expected_estimator(
    advantage: Callable[[Tensor, Tensor], Tensor], policy: ExactPolicy, prompt: int, n: int
) -> Tensor:
    """E[(1/n) Σ_i A_i ∇log π(y_i)] (D,), exactly: all outcomes are groups of one call."""
    outcomes, probability = all_groups(policy, prompt, n)
    ids, order = scrambled_ids(len(outcomes), n)
    responses = outcomes.flatten()
    values = torch.empty(len(ids), dtype=F64)
    values[order] = advantage(policy.reward[prompt][responses][order], ids[order])
    weighted = values * probability.repeat_interleave(n) / n
    return weighted @ policy.scores()[prompt][responses]
