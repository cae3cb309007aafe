"""The gradient of an update against plain autograd on repeated prompts."""

import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from policies.models import VOCABULARY, pair, plain_logp, tiny
from waterline.losses import PolicyLoss
from waterline.policies import SharedPrefixLM
from waterline.rollouts import Finish, Kind, Rollouts
from waterline.training.non_finite import NonFinite
from waterline.training.sequences.candidates import Sequences
from waterline.training.sequences.update import PolicyUpdate, UpdateSettings, _Batch

CAP = 9
NORMALISATIONS = ("token-mean", "seqnorm", "sequence-mean")
EVERYTHING = {"clip_low": 0.2, "clip_high": 0.28, "dual_clip": 3.0, "kl": "k3", "kl_coef": 0.1,
              "entropy_coef": 0.05}  # fmt: skip


@dataclass(frozen=True)
class Batch:
    """Responses with their advantages and weights (R,)."""

    found: Sequences
    advantage: torch.Tensor
    weight: torch.Tensor


def make_batch(counts, seed=0):
    """Random prompts and responses of uneven lengths, advantages and weights; some are 0."""
    rng = np.random.default_rng(seed)
    prompts = [rng.integers(VOCABULARY, size=size) for size in rng.integers(2, 12, len(counts))]
    ids = rng.permutation(1000)[: len(counts)] - 500
    table = Rollouts.from_prompts(ids.tolist(), [p.tolist() for p in prompts])
    parent = np.repeat(np.arange(len(counts)), counts)
    spans = [rng.integers(VOCABULARY, size=rng.integers(1, CAP + 1)) for _ in parent]
    table = table.grown(
        parent, spans, Kind.MODEL, finish=np.full(len(parent), Finish.STOP, dtype=np.int8),
        version=0, sample=np.arange(len(parent)),
        logp=[np.zeros(len(s), dtype=np.float32) for s in spans],
    )  # fmt: skip
    node = table.leaf_nodes()
    advantage = rng.normal(size=len(node)) * rng.integers(0, 4, size=len(node)).clip(max=1)
    weight = rng.uniform(0.2, 2.0, size=len(counts))[parent]
    found = Sequences(
        table, node, parent, ids[parent], np.zeros(len(node), dtype=bool), np.zeros(len(node)),
        np.array([len(s) for s in spans]), {},
    )  # fmt: skip
    return Batch(found, torch.from_numpy(advantage), torch.from_numpy(weight))


def responses(model, batch, temperature):
    """Each response's token log-probabilities and entropies after its own copy of the prompt."""
    table = batch.found.rollouts
    for node, row in zip(batch.found.node.tolist(), batch.found.row.tolist(), strict=True):
        prompt, span = table.span(row), table.span(node)
        tokens = torch.from_numpy(np.concatenate([prompt, span]))
        logp, entropy = plain_logp(model, tokens, temperature)
        yield logp[-len(span) :], entropy[-len(span) :]


def formula(logp, old, reference, entropy, advantage, options):
    """Token terms as the papers write them."""
    ratio = (logp - old).exp()
    loss = -advantage * ratio
    if "clip_low" in options:
        clipped = ratio.clamp(1 - options["clip_low"], 1 + options["clip_high"])
        loss = torch.maximum(loss, -advantage * clipped)
        if advantage < 0:
            loss = loss.clamp(max=float(-advantage * options["dual_clip"]))
    if "kl_coef" in options:
        loss = loss + options["kl_coef"] * ((reference - logp).exp() - (reference - logp) - 1)
    return loss - options.get("entropy_coef", 0.0) * entropy


def plain_steps(model, reference, batch, normalisation, options, parts, epochs, lr, temperature):
    """The gradient of every optimizer step, each followed by one of plain descent."""
    with torch.no_grad():
        old = [logp for logp, _ in responses(model, batch, temperature)]
        held = [logp for logp, _ in responses(reference, batch, temperature)]
    gradients = []
    for _ in range(epochs):
        for part in parts:
            chosen = [r for r, row in enumerate(batch.found.row) if row in part]
            # The whole step's, times the part's share of the prompts with a response.
            rows = set(batch.found.row.tolist())
            denominator = {
                "token-mean": sum(map(len, old)), "seqnorm": len(old) * CAP,
                "sequence-mean": len(old),
            }[normalisation] * len(rows & set(part)) / len(rows)  # fmt: skip
            total = torch.zeros(())
            for r, (logp, entropy) in enumerate(responses(model, batch, temperature)):
                if r not in chosen:
                    continue
                advantage = batch.advantage[r].float() * batch.weight[r].float()
                terms = formula(logp, old[r], held[r], entropy, advantage, options)
                total = total + terms.sum() / (len(logp) if normalisation == "sequence-mean" else 1)
            (total / denominator).backward()
            gradients.append(descend(model, lr))
    return gradients


def descend(model, lr):
    seen = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            seen[name] = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter -= lr * seen[name]
            parameter.grad = None
    return seen


def packed_steps(policy, batch, loss, *, lr=0.0, step_on_no_signal=False, temperature=1.0,
                 reference=None, per_token=None, **settings):  # fmt: skip
    """The gradients of :class:`PolicyUpdate`, what it reports, and how often the policy ran."""
    gradients, calls = [], []

    def optimize():
        gradients.append(descend(policy.model, lr))
        return 1.0

    update = PolicyUpdate(
        policy=policy, loss=loss, optimize=optimize, backward=torch.Tensor.backward,
        settings=UpdateSettings(**settings), temperature=temperature,
        step_on_no_signal=step_on_no_signal, reference=reference,
    )  # fmt: skip
    length = torch.from_numpy(batch.found.length)
    advantage = batch.advantage.repeat_interleave(length) if per_token is None else per_token
    with policy.register_forward_pre_hook(lambda *_: calls.append(1)):
        learned = update(batch.found, advantage, batch.weight)
    assert learned.stepped == bool(gradients)
    return gradients, learned.metrics, len(calls)


def assert_close(ours, plain, tolerance=2e-5):
    assert len(ours) == len(plain)
    for mine, theirs in zip(ours, plain, strict=True):
        scale = max(float(g.abs().max()) for g in theirs.values())
        assert scale > 0
        for name, gradient in theirs.items():
            torch.testing.assert_close(mine[name], gradient, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("max_tokens", [1, 40, 100_000])
def test_a_gradient_is_that_of_repeated_prompts_for_every_split(normalisation, max_tokens):
    plain, policy = pair()
    batch = make_batch([3, 0, 7, 1, 2])
    loss = PolicyLoss(normalisation=normalisation, length_cap=CAP)
    expected = plain_steps(
        plain, plain, batch, normalisation, {}, [range(5)], epochs=1, lr=0.0, temperature=0.7
    )
    ours, seen, _ = packed_steps(policy, batch, loss, max_tokens=max_tokens, temperature=0.7)
    assert_close(ours, expected)
    # The diagnostics are of all tokens, those without an advantage too.
    with torch.no_grad():
        found = list(responses(plain, batch, 0.7))
    entropy = torch.cat([entropy for _, entropy in found]).mean()
    assert seen["policy/entropy"] == pytest.approx(float(entropy), rel=1e-5)
    gap = torch.cat([logp for logp, _ in found]).abs().max()  # the engine said 0 everywhere
    assert seen["engine/logp_gap"] == pytest.approx(float(gap), rel=1e-4)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("max_tokens", [30, 100_000])
def test_minibatches_and_epochs_keep_the_old_policy_and_the_reference(normalisation, max_tokens):
    plain, policy = pair("llama")
    reference = tiny("llama")
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter *= 1.05
    other = SharedPrefixLM(copy.deepcopy(reference))
    reference.set_attn_implementation("eager")
    batch = make_batch([3, 0, 6, 1, 2, 0, 4], seed=1)
    expected = plain_steps(
        plain, reference, batch, normalisation, EVERYTHING, [(0, 2, 3), (4, 6)],
        epochs=2, lr=0.05, temperature=1.0,
    )  # fmt: skip
    loss = PolicyLoss(normalisation=normalisation, length_cap=CAP, **EVERYTHING)
    ours, seen, _ = packed_steps(
        policy, batch, loss, lr=0.05, minibatches=2, epochs=2, max_tokens=max_tokens,
        reference=other,
    )  # fmt: skip
    assert_close(ours, expected, 2e-4)  # rounding grows from step to step
    assert len(ours) == 4
    assert seen["grad/norm"] == 1.0
    # Seen before any weight had changed, so against what the engine said: zeros.
    with torch.no_grad():
        first = torch.cat([logp for logp, _ in responses(tiny_eager("llama"), batch, 1.0)])
    assert seen["engine/logp_gap"] == pytest.approx(float(first.abs().max()), rel=1e-4)


def tiny_eager(name):
    model = tiny(name)
    model.set_attn_implementation("eager")
    return model


def silent(counts):
    batch = make_batch(counts)
    return replace(batch, advantage=torch.zeros_like(batch.advantage))


def test_a_batch_without_signal_steps_only_where_asked():
    _, policy = pair()
    batch = silent([2, 3])
    ours, seen, _ = packed_steps(policy, batch, PolicyLoss())
    assert ours == []
    assert "grad/norm" not in seen
    assert seen["loss/value"] == 0
    assert seen["policy/entropy"] > 0  # diagnostics are of all tokens nevertheless
    ours, seen, _ = packed_steps(policy, batch, PolicyLoss(), step_on_no_signal=True)
    assert len(ours) == 1
    assert seen["grad/norm"] == 1.0
    # An entropy bonus acts without advantages.
    ours, *_ = packed_steps(policy, batch, PolicyLoss(entropy_coef=0.1))
    assert max(float(g.abs().max()) for g in ours[0].values()) > 0


def test_a_loss_that_is_no_number_stops_before_any_weight_changes():
    _, policy = pair()
    batch = make_batch([2, 3])
    batch.advantage[1] = float("nan")
    before = copy.deepcopy(policy.state_dict())
    with pytest.raises(NonFinite, match="loss is nan") as caught:
        packed_steps(policy, batch, PolicyLoss(), lr=1.0)
    assert caught.value.batch["advantage"].isnan().any()
    assert torch.equal(
        caught.value.batch["rollouts"]["tokens"], torch.from_numpy(batch.found.rollouts.tokens)
    )
    assert all(before[k].equal(v) for k, v in policy.state_dict().items())


def test_what_a_step_that_is_no_number_leaves_can_be_saved_and_loaded(tmp_path):
    _, policy = pair()
    batch = make_batch([2, 3])
    batch.advantage[1] = float("nan")
    with pytest.raises(NonFinite) as caught:
        packed_steps(policy, batch, PolicyLoss())
    torch.save(caught.value.batch, tmp_path / "batch.pt")
    kept = torch.load(tmp_path / "batch.pt", weights_only=True)
    assert kept["verdict"] == [""] * len(batch.found.rollouts)
    assert kept["weight"].equal(batch.weight)
    assert kept["node"].tolist() == batch.found.node.tolist()


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("max_tokens", [1, 40, 100_000])
def test_an_advantage_per_token_weighs_each_token_by_its_own(normalisation, max_tokens):
    plain, policy = pair()
    batch = make_batch([3, 0, 7, 1, 2])
    length = batch.found.length
    rng = np.random.default_rng(3)
    each = [torch.from_numpy(rng.normal(size=n)) for n in length]
    each[2][:] = 0.0  # a response without an advantage
    each[4][1:] = 0.0
    total, denominator = torch.zeros(()), {
        "token-mean": length.sum(), "seqnorm": len(length) * CAP, "sequence-mean": len(length),
    }[normalisation]  # fmt: skip
    for r, (logp, _) in enumerate(responses(plain, batch, 1.0)):
        term = -(each[r].float() * batch.weight[r].float() * logp).sum()
        total = total + term / (length[r] if normalisation == "sequence-mean" else 1)
    (total / float(denominator)).backward()
    expected = [descend(plain, 0.0)]
    ours, *_ = packed_steps(
        policy, batch, PolicyLoss(normalisation=normalisation, length_cap=CAP),
        per_token=torch.cat(each), max_tokens=max_tokens,
    )  # fmt: skip
    assert_close(ours, expected)


def test_on_policy_the_policy_runs_once_a_row_and_otherwise_once_more_before():
    """A method that asks for no column makes no extra pass."""
    _, policy = pair()
    batch = make_batch([3, 0, 7, 1, 2])
    batch = replace(batch, advantage=torch.ones_like(batch.advantage))
    reference = SharedPrefixLM(tiny())
    runs = {
        name: packed_steps(policy, batch, loss, **settings)[2]
        for name, loss, settings in [
            ("on-policy", PolicyLoss(), {}),
            ("two minibatches", PolicyLoss(), {"minibatches": 2}),
            ("two epochs", PolicyLoss(), {"epochs": 2}),
            ("entropy", PolicyLoss(entropy_coef=0.1), {}),
            # The reference runs, and the policy itself no more than without it.
            ("reference", PolicyLoss(kl="k3", kl_coef=0.1), {"reference": reference}),
        ]
    }
    assert runs == {
        "on-policy": 1, "two minibatches": 1 + 2, "two epochs": 1 + 2, "entropy": 1, "reference": 1,
    }  # fmt: skip


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("minibatches", [1, 2, 3, 5])
def test_a_prompt_counts_the_same_in_every_minibatch_whatever_its_count(normalisation, minibatches):
    """With unit advantages each prompt's share Σ w/D is that of N0/N, whatever part it is in."""
    _, policy = pair()
    counts = [12, 4, 2, 0, 30, 8, 8]
    batch = make_batch(counts, seed=3)
    length = np.full(len(batch.found.row), 1)
    batch = replace(batch, found=replace(batch.found, length=length))
    weight = torch.tensor([8 / n if n not in (0, 2) else 0.0 for n in counts])[batch.found.row]
    batch = replace(batch, weight=weight, advantage=torch.ones(len(length)))
    update = PolicyUpdate(
        policy=policy, loss=PolicyLoss(normalisation=normalisation, length_cap=CAP),
        optimize=lambda: 0.0, backward=lambda loss: None,
        settings=UpdateSettings(minibatches=minibatches),
    )  # fmt: skip
    seen = {}
    parts = update._minibatches(_Batch(batch.found, batch.advantage, batch.weight))
    assert len(parts) == min(minibatches, 5)
    for members, denominator in parts:
        rows = batch.found.row[members]
        retained = [row for row in np.unique(rows) if counts[row] > 2]
        for row in np.unique(rows):
            assert row not in seen
            share = weight[members][torch.from_numpy(rows == row)].sum() / denominator
            seen[int(row)] = float(share) * len(retained)
    assert sorted(seen) == [0, 1, 2, 4, 5, 6]
    whole = update.loss.denominator(torch.from_numpy(length))
    for row, share in seen.items():
        expected = 0.0 if counts[row] == 2 else 8 * 5 / whole
        assert share == pytest.approx(expected)
