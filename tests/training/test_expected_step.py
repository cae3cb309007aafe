"""The mean gradient of a whole step, over every outcome that its samples may have."""

import itertools
from math import factorial, prod

import numpy as np
import pytest
import torch

from toys.scripted import model
from waterline.advantages import PerResponse, maxrl
from waterline.allocation import UniformAllocator, WaterlineAllocator, fidelity
from waterline.losses import PolicyLoss
from waterline.policies import SharedPrefixLM
from waterline.rewards import judgement
from waterline.rollouts import Finish, Kind, SamplingParams
from waterline.success import Oracle
from waterline.tasks import Prompt
from waterline.training.sequences.candidates import SequenceCandidates
from waterline.training.sequences.update import PolicyUpdate, UpdateSettings
from waterline.training.step import Pieces, run_step

STOP, RIGHT = 1, "0 1"
# All responses of up to two tokens from the vocabulary {0, 1}.
RESPONSES = ((1,), (0, 1), (0, 0))
PROMPTS = [
    Prompt(7, "", (0, 0, 1), ""),
    Prompt(-3, "", (1, 1), ""),
    Prompt(40, "", (0, 1, 1, 0), ""),
]
N0, CAP = 2, 2


class Words:
    def decode(self, tokens):
        return " ".join(map(str, tokens))


def right_or_wrong(answers, responses, complete):
    """Right is the response '0 1' alone."""
    return judgement(["correct" if r == RIGHT else "wrong" for r in responses])


class Chosen:
    """An engine that samples what was chosen: a tuple of responses for each prompt."""

    def __init__(self, outcome):
        self.outcome = outcome

    def extend(self, rollouts, at_nodes, counts, params):
        assert [len(o) for o in self.outcome] == list(counts)
        spans = [np.array(RESPONSES[i]) for group in self.outcome for i in group]
        return rollouts.grown(
            np.repeat(at_nodes, counts), spans, Kind.MODEL, version=0,
            finish=np.full(len(spans), Finish.STOP, dtype=np.int8), sample=np.arange(len(spans)),
            logp=[np.zeros(len(s), dtype=np.float32) for s in spans],
        )  # fmt: skip


def log_probabilities(plain, prompt):
    """log π of each of the responses, by autograd through the plain model."""
    values = []
    for response in RESPONSES:
        tokens = torch.tensor([*prompt.tokens, *response])
        log_probs = plain(input_ids=tokens[None], use_cache=False).logits[0].log_softmax(-1)
        place = len(prompt.tokens) - 1 + np.arange(len(response))
        values.append(sum(log_probs[i, t] for i, t in zip(place, response, strict=True)))
    return torch.stack(values)


def flat(model):
    parts = [p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters()]
    gradient = torch.cat([p.double().reshape(-1) for p in parts])
    model.zero_grad()
    return gradient


def expected_gradient(allocator, p, advantage=PerResponse(maxrl)):  # noqa: B008
    """−Σ over outcomes of probability × the gradient that the step hands to the optimizer."""
    plain, trained = model(), model().float()
    with torch.no_grad():
        probability = [log_probabilities(plain, q).exp().tolist() for q in PROMPTS]
    by_id = dict(zip([q.id for q in PROMPTS], p, strict=True))
    success = Oracle(lambda ids: [by_id[int(i)] for i in ids])
    policy = SharedPrefixLM(trained)
    gradients = []

    def optimize():
        gradients.append(flat(policy.model))
        return 1.0

    loss = PolicyLoss(normalisation="seqnorm", length_cap=CAP)
    update = PolicyUpdate(
        policy=policy, loss=loss, optimize=optimize, backward=torch.Tensor.backward,
        settings=UpdateSettings(max_tokens=24), step_on_no_signal=True,
    )  # fmt: skip
    plan = allocator.plan(p, n0=N0)
    # Responses of a group are exchangeable: multisets, with the number of orders of each.
    groups = [
        list(itertools.combinations_with_replacement(range(3), n)) for n in plan.counts.tolist()
    ]
    mean, mass = torch.zeros(sum(x.numel() for x in trained.parameters())).double(), 0.0
    for outcome in itertools.product(*groups):
        weight = prod(
            factorial(len(group)) / prod(factorial(group.count(i)) for i in range(3))
            * prod(probability[q][i] for i in group)
            for q, group in enumerate(outcome)
        )  # fmt: skip
        pieces = Pieces(
            success=success, allocator=allocator, engine=Chosen(outcome), verifier=right_or_wrong,
            advantage=advantage, loss=loss, n0=N0,
        )  # fmt: skip
        params = SamplingParams(key=0, max_tokens=2, stop=(STOP,))
        candidates = SequenceCandidates(
            PROMPTS,
            pieces.engine,
            pieces.verifier,
            Words(),
            params,
            fill=update.fill,
            reads=advantage.reads,
        )
        run_step(pieces, candidates, update)
        mean -= weight * gradients.pop()
        mass += weight
    assert mass == pytest.approx(1.0)
    return plan, mean


def formula(plan, factor):
    """(1/B) Σ_{q ∈ A} factor_q κ(p_q, N_q) ∇log p_q, with the gradient by autograd on p_q."""
    plain = model()
    total = torch.zeros(sum(x.numel() for x in plain.parameters())).double()
    for q, prompt in enumerate(PROMPTS):
        log_p = log_probabilities(plain, prompt)[1]
        log_p.backward()
        kappa = float(fidelity(float(log_p.detach().exp()), int(plan.counts[q])))
        total += plan.active[q] * factor[q] * kappa * flat(plain)
    return total / len(PROMPTS)


def true_p():
    with torch.no_grad():
        return np.array([float(log_probabilities(model(), q)[1].exp()) for q in PROMPTS])


def close(mean, expected):
    # Seqnorm divides by B·N0·L_cap.
    torch.testing.assert_close(mean * CAP, expected, rtol=1e-4, atol=1e-6)
    assert float(expected.abs().max()) > 1e-3


def test_uniform_counts_give_equation_21():
    plan, mean = expected_gradient(UniformAllocator(), true_p())
    assert plan.counts.tolist() == [2, 2, 2]
    close(mean, formula(plan, [1, 1, 1]))


@pytest.mark.parametrize(("p", "counts"), [((0.9, 0.5, 0.9), [2, 2, 2]), ((0.02, 0.6, 0.97), None)])
def test_the_waterline_gives_equation_21_whatever_the_estimates(p, counts):
    plan, mean = expected_gradient(WaterlineAllocator(n_max=8, u0=0.1), np.array(p))
    assert plan.counts.sum() == 6
    if counts is None:
        assert len(set(plan.counts.tolist())) > 1
        assert not plan.active.all()
    close(mean, formula(plan, [1, 1, 1]))


def test_without_the_correction_the_waterline_gives_equation_11():
    allocator = WaterlineAllocator(n_max=8, u0=0.1, correct=False)
    plan, mean = expected_gradient(allocator, np.array([0.02, 0.6, 0.97]))
    assert plan.counts.max() > N0
    close(mean, formula(plan, plan.counts / N0))


class Uncertain:
    """A_it = (r_i + 0.3) · H_it: where the policy is certain, nothing is learned."""

    reads = ("entropy",)

    def __call__(self, rewards, group, length, columns):
        entropy = columns["entropy"].double()
        assert len(entropy) == length.sum()
        return (rewards + 0.3).repeat_interleave(length) * entropy


def tokens_of(plain, prompt, response):
    """log π of a response's tokens and the entropies of their distributions."""
    tokens = torch.tensor([*prompt.tokens, *response])
    log_probs = plain(input_ids=tokens[None], use_cache=False).logits[0].log_softmax(-1)
    rows = log_probs[len(prompt.tokens) - 1 : -1]
    return rows[torch.arange(len(response)), torch.tensor(response)], -(rows.exp() * rows).sum(-1)


def test_an_advantage_per_token_has_the_expectation_over_all_responses():
    """(1/B) Σ_{q ∈ A} Σ_y π(y|q) (r(y) + 0.3) Σ_t H_t ∇log π(y_t|q, y_<t)."""
    allocator = WaterlineAllocator(n_max=8, u0=0.1)
    plan, mean = expected_gradient(allocator, np.array([0.02, 0.6, 0.97]), Uncertain())
    plain = model()
    total = torch.zeros(sum(x.numel() for x in plain.parameters())).double()
    for q, prompt in enumerate(PROMPTS):
        value = 0.0
        for response in RESPONSES:
            logp, entropy = tokens_of(plain, prompt, response)
            reward = float(" ".join(map(str, response)) == RIGHT) + 0.3
            value = value + logp.sum().exp().detach() * reward * (entropy.detach() * logp).sum()
        value.backward()
        total += plan.active[q] * flat(plain)
    close(mean, total / len(PROMPTS))
