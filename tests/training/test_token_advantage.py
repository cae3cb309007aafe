"""Advantages per token, from the columns of a step to its gradient."""

import itertools
from math import factorial, prod

import numpy as np
import pandas as pd
import pytest
import torch

from toys.advantages import ByEntropy, Discounted
from toys.scripted import CAP, PARTIAL, PROMPTS, RESPONSES, Step, flat, model, token_logp
from training.kills import finish, start
from training.tiny import TINY, timeless
from waterline.advantages import PerResponse, rloo
from waterline.allocation import UniformAllocator, WaterlineAllocator
from waterline.losses import PolicyLoss
from waterline.runs import RunFolder, read_metrics
from waterline.success import Oracle
from waterline.training.sequences.update import UpdateSettings

N0 = 2
REWARD = [PARTIAL.rewards[" ".join(map(str, r))] for r in RESPONSES]
SEQNORM = PolicyLoss(normalisation="seqnorm", length_cap=CAP)
ADVANTAGES = {"discounted": Discounted(0.6), "entropy": ByEntropy()}


def factors(name, entropy):
    """(T,) what a token's advantage is, next to r_i − mean of the others."""
    to_go = torch.arange(len(entropy) - 1, -1, -1)
    return 0.6**to_go if name == "discounted" else entropy.detach()


def formula(name, prompts, active):
    """(1/B) Σ_{q ∈ A} Σ_y π(y|q) (r(y) − r̄_q) Σ_t f_t ∇log π(y_t), by autograd on π.

    The others of a group are independent of the response, so that their mean is r̄_q on average.
    """
    plain, total = model(), 0.0
    for q in np.flatnonzero(active):
        tokens = token_logp(plain, prompts[q])
        pi = [float(logp.detach().sum().exp()) for logp, _ in tokens]
        mean = sum(p * r for p, r in zip(pi, REWARD, strict=True))
        for p, r, (logp, entropy) in zip(pi, REWARD, tokens, strict=True):
            total = total + p * (r - mean) * (factors(name, entropy) * logp).sum()
    (total / len(prompts)).backward()
    return flat(plain)


def expected_gradient(name, prompts, allocator, p, max_tokens):
    """The mean over all outcomes of the samples of what the step hands to the optimizer."""
    with torch.no_grad():
        probability = [
            [float(logp.sum().exp()) for logp, _ in token_logp(model(), q)] for q in prompts
        ]
    counts = allocator.plan(p, n0=N0).counts.tolist()
    success = Oracle(lambda ids: p)
    # The responses of a group may be exchanged: multisets, with the number of orders of each.
    groups = [list(itertools.combinations_with_replacement(range(3), n)) for n in counts]
    mean, mass = 0.0, 0.0
    step = Step(
        allocator, ADVANTAGES[name], {}, n0=N0, success=success, loss=SEQNORM,
        settings=UpdateSettings(max_tokens=max_tokens),
    )  # fmt: skip
    for outcome in itertools.product(*groups):
        weight = prod(
            factorial(len(group)) / prod(factorial(group.count(i)) for i in range(3))
            * prod(probability[q][i] for i in group)
            for q, group in enumerate(outcome)
        )  # fmt: skip
        lines = {q.id: group for q, group in zip(prompts, outcome, strict=True)}
        step.pieces.engine.lines = lines
        step(prompts)
        mean = mean - weight * step.gradients.pop()
        mass += weight
    assert mass == pytest.approx(1.0)
    return mean


@pytest.mark.parametrize("name", ADVANTAGES)
@pytest.mark.parametrize("max_tokens", [5, 1000])
def test_the_mean_gradient_of_a_step_is_that_of_the_formula(name, max_tokens):
    prompts = PROMPTS[:2]
    mean = expected_gradient(name, prompts, UniformAllocator(), np.array([0.5, 0.5]), max_tokens)
    expected = formula(name, prompts, [True, True])
    # Seqnorm divides by B·N0·L_cap, and the weighted advantages of a prompt are N0 on average.
    torch.testing.assert_close(mean * CAP, expected, rtol=1e-4, atol=1e-6)
    assert float(expected.abs().max()) > 1e-3


def test_the_weights_of_the_waterline_correct_it_as_they_do_per_response():
    p = np.array([0.02, 0.6, 0.97])
    allocator = WaterlineAllocator(n_max=8, u0=0.1)
    plan = allocator.plan(p, n0=N0)
    assert len(set(plan.counts.tolist())) > 1
    mean = expected_gradient("discounted", PROMPTS, allocator, p, 1000)
    expected = formula("discounted", PROMPTS, plan.active)
    torch.testing.assert_close(mean * CAP, expected, rtol=1e-4, atol=1e-6)


# Any responses: what a split into rows, minibatches or ranks must not change.

LINES = {7: (0, 1, 2, 1, 0), -3: (1, 2, 2, 0, 1), 40: (2, 2, 1, 0, 0)}


def gradients(name, normalisation="token-mean", **settings):
    loss = PolicyLoss(normalisation=normalisation, length_cap=CAP)
    step = Step(UniformAllocator(), ADVANTAGES[name], LINES, n0=5, loss=loss,
                settings=UpdateSettings(**settings))  # fmt: skip
    step(PROMPTS)
    return step


@pytest.mark.parametrize("name", ADVANTAGES)
@pytest.mark.parametrize("max_tokens", [1, 7, 12])
def test_every_split_into_rows_gives_the_same_gradient(name, max_tokens):
    (whole,), (split,) = (gradients(name, max_tokens=n).gradients for n in (1000, max_tokens))
    assert float(whole.abs().max()) > 1e-3
    torch.testing.assert_close(split, whole, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", ADVANTAGES)
@pytest.mark.parametrize("normalisation", ["token-mean", "seqnorm", "sequence-mean"])
def test_minibatches_of_an_unmoved_policy_add_up_to_the_gradient_of_the_step(name, normalisation):
    (whole,) = gradients(name, normalisation).gradients
    parts = gradients(name, normalisation, minibatches=3)
    total = torch.zeros_like(whole)
    for gradient in parts.gradients:
        total += gradient / 3  # each is divided by its share of the step's denominator
    torch.testing.assert_close(total, whole, rtol=1e-4, atol=1e-7)


def test_a_column_is_the_entropy_of_every_token_and_costs_one_pass():
    step = gradients("entropy")
    found = step.learned_from
    for row, leaf in zip(found.row.tolist(), found.node.tolist(), strict=True):
        place = RESPONSES.index(tuple(found.rollouts.response(leaf).tolist()))
        _, entropy = token_logp(model(), PROMPTS[row])[place]
        where = slice(found.rollouts.start[leaf], found.rollouts.stop[leaf])
        column = found.rollouts.columns["entropy"]
        np.testing.assert_allclose(column[where], entropy.detach().numpy(), rtol=1e-4)
    prompts = found.rollouts.sample[: len(PROMPTS)]
    assert (prompts == -1).all()
    assert np.isnan(found.rollouts.columns["entropy"][: found.rollouts.stop[2]]).all()


@pytest.mark.parametrize(
    ("advantage", "settings", "passes"),
    [
        (PerResponse(rloo), {}, 1),
        (Discounted(), {}, 1),
        (ByEntropy(), {}, 2),
        (ByEntropy(), {"minibatches": 3}, 1 + 3),  # old_logp comes with the entropy
        (PerResponse(rloo), {"epochs": 2}, 1 + 2),
    ],
)
def test_a_method_that_asks_for_no_column_takes_no_extra_pass(advantage, settings, passes):
    # Each prompt's responses all differ in reward from their others', so that one row has them all.
    lines = {7: (0, 1), -3: (1, 2), 40: (2, 0)}
    step = Step(UniformAllocator(), advantage, lines, n0=2,
                settings=UpdateSettings(max_tokens=1000, **settings))  # fmt: skip
    calls = []
    step.policy.register_forward_hook(lambda *_: calls.append(1))
    step(PROMPTS)
    assert len(calls) == passes


def test_an_unknown_column_is_named():
    class Reads(Discounted):
        reads = ("entropi",)

    step = Step(UniformAllocator(), Reads(), LINES)
    with pytest.raises(ValueError, match="no token column 'entropi': choose among old_logp"):
        step(PROMPTS)


@pytest.mark.slow
def test_two_ranks_share_the_columns_that_an_advantage_reads(base, tmp_path):
    # An epsilon as large as the gradients, so that Adam does not blow rounding up to steps of ±lr.
    settings = ("experiment=maze/laptop", "method=rloo", *TINY, f"base.path={base}",
                "advantages._target_=toys.advantages.ByEntropy", "training.steps=6",
                "training.optimizer.eps=1e-3", "training.update.minibatches=2")  # fmt: skip
    folders = []
    for devices in (1, 2):
        results = tmp_path / str(devices)
        finish(start(results, (*settings, f"trainer.devices={devices}")))
        folders.append(RunFolder(next(results.rglob("config.yaml")).parent))
    one, two = folders
    pd.testing.assert_frame_equal(
        *(pd.read_parquet(folder.eval / "counts.parquet") for folder in folders)
    )
    for x, y in zip(read_metrics(one.metrics), read_metrics(two.metrics), strict=True):
        for key, value in timeless(x).items():
            atol = 1e-4 if key == "engine/logp_gap" else 1e-5
            assert y[key] == (value if value is None else pytest.approx(value, rel=1e-3, abs=atol))
    weights = [torch.load(f.checkpoints / "final.pt", weights_only=True)["policy"] for f in folders]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, rtol=1e-3, atol=1e-5)
