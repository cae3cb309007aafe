"""Candidates whose responses are sequences: what is judged, gathered and added in between."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from policies.models import tiny
from rollouts.two_ranks import PARAMS, PROMPTS, Numbered, Words, even
from waterline.advantages import PerResponse, maxrl
from waterline.allocation import Plan, UniformAllocator
from waterline.losses import PolicyLoss
from waterline.policies import SharedPrefixLM
from waterline.rewards import Judgement
from waterline.rollouts import EngineError, Finish, Kind, Ranks, SharedPrefixEngine
from waterline.runs import RunFailed
from waterline.success import DiscountedBeta
from waterline.tasks import Prompt
from waterline.training.sequences.candidates import SequenceCandidates, path_tokens
from waterline.training.sequences.update import PolicyUpdate, UpdateSettings
from waterline.training.step import Pieces, run_step


def plan_of(*counts, further=0):
    n = len(counts)
    return Plan(
        np.array(counts), np.ones(n), np.ones(n, dtype=bool), water_level=float("nan"),
        uniform=True, further=further,
    )  # fmt: skip


def candidates_of(engine=None, verifier=even, **more):
    return SequenceCandidates(PROMPTS, engine or Numbered(), verifier, Words(), PARAMS, **more)


class Judge:
    """Notes what it is asked; rewards a response with a tenth of its length, all but the first."""

    def __init__(self):
        self.asked = []

    def __call__(self, answers, responses, complete):
        self.asked.append((list(answers), list(responses), complete.tolist()))
        success = np.array([len(r.split()) > 1 for r in responses], dtype=bool)
        reward = np.array([len(r.split()) / 10 for r in responses])
        return Judgement(success, reward, np.where(success, "correct", "wrong"))


def test_each_response_is_judged_once_against_the_answer_of_its_prompt():
    judge = Judge()
    prompts = [replace(p, answer=f"answer {p.id}") for p in PROMPTS]
    candidates = SequenceCandidates(prompts, Numbered(), judge, Words(), PARAMS)
    first = candidates.sample(plan_of(2, 0, 1))
    assert judge.asked == [
        (["answer 40"] * 2 + ["answer 8"], ["5", "5 0", "1"], [False, True, False])
    ]
    assert first.trials.tolist() == [2, 0, 1]
    assert first.successes.tolist() == [1, 0, 0]
    np.testing.assert_allclose(first.columns["reward"], [0.3, 0, 0.1])
    assert first.columns["tokens"].tolist() == [3, 0, 1]
    both = candidates.sample(plan_of(1, 1, 0))
    assert judge.asked[1] == (["answer 40", "answer -3"], ["5 0 1", "3"], [False, False])
    assert both.trials.tolist() == [3, 1, 1]
    np.testing.assert_allclose(both.columns["reward"], [0.6, 0.1, 0.1])
    # An empty round asks for nothing and changes nothing.
    none = candidates.sample(plan_of(0, 0, 0))
    assert judge.asked[2:] == [([], [], [])]
    assert none.trials.tolist() == both.trials.tolist()
    found = candidates.responses()
    assert found.row.tolist() == [0, 0, 2, 0, 1]
    assert found.group.tolist() == [40, 40, 8, 40, -3]
    assert found.success.tolist() == [False, True, False, True, False]
    np.testing.assert_allclose(found.reward, [0.1, 0.2, 0.1, 0.3, 0.1])
    assert found.length.tolist() == [1, 2, 1, 3, 1]


class Empty(Numbered):
    """An engine whose responses have no token."""

    def extend(self, rollouts, at_nodes, counts, params):
        parent = np.repeat(at_nodes, counts)
        return rollouts.grown(
            parent, [parent[:0]] * len(parent), Kind.MODEL,
            finish=np.full(len(parent), Finish.STOP, dtype=np.int8), version=0,
            sample=np.arange(len(parent)), logp=[np.zeros(0, np.float32)] * len(parent),
        )  # fmt: skip


def test_a_response_without_a_token_is_the_engines_fault():
    with pytest.raises(EngineError, match="gave prompt -3 a response without a token") as caught:
        candidates_of(Empty()).sample(plan_of(0, 1, 1))
    assert isinstance(caught.value, RunFailed)
    assert not isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_no_responses_at_all():
    candidates = candidates_of()
    outcomes = candidates.sample(plan_of(0, 0, 0))
    assert outcomes.trials.tolist() == outcomes.successes.tolist() == [0, 0, 0]
    found = candidates.responses()
    assert len(found.row) == len(found.length) == len(path_tokens(found)) == 0


def test_those_kept_take_their_token_columns_along():
    names = ("entropy",)

    def fill(found, reads):
        assert tuple(reads) == names
        column = np.arange(len(found.rollouts.tokens), dtype=np.float32)
        return replace(found.rollouts, columns={**found.rollouts.columns, "entropy": column})

    candidates = candidates_of(fill=fill, reads=names)
    candidates.sample(plan_of(3, 1, 2))
    found = candidates.responses()
    assert found.length.tolist() == [1, 2, 3, 1, 1, 2]
    own = [np.arange(found.rollouts.start[n], found.rollouts.stop[n]) for n in found.node.tolist()]
    assert found.columns["entropy"].tolist() == np.concatenate(own).tolist()
    mask = np.array([False, True, False, True, False, True])
    kept = found.kept(mask)
    expected = np.concatenate([o for o, k in zip(own, mask, strict=True) if k])
    assert kept.columns["entropy"].tolist() == expected.tolist()
    for name in ("node", "row", "group", "success", "reward", "length"):
        assert getattr(kept, name).tolist() == getattr(found, name)[mask].tolist()
    assert kept.rollouts is found.rollouts
    nothing = found.kept(np.zeros(6, dtype=bool))
    assert len(nothing.row) == len(nothing.columns["entropy"]) == 0


def test_columns_that_nothing_fills_are_a_sentence():
    candidates = candidates_of(reads=("entropy",))
    candidates.sample(plan_of(1, 1, 1))
    with pytest.raises(ValueError, match="reads entropy, and nothing fills them"):
        candidates.responses()


def test_responses_of_a_deep_tree_have_the_tokens_of_their_paths():
    """Two branches below an observation share the first turn, and each reads it."""
    engine = Numbered()
    candidates = candidates_of(engine)
    candidates.sample(plan_of(3, 1, 2))
    table = candidates.rollouts
    table = table.observed(np.array([4, 7]), [np.array([6, 6]), np.array([1])])
    at = np.array([len(table) - 2, len(table) - 1])
    candidates.rollouts = table = engine.extend(table, at, np.array([2, 1]), PARAMS)
    found = candidates.responses()
    assert len(found.node) == 4 + 3
    expected = []
    for leaf in found.node.tolist():
        nodes = [n for n in table.path(leaf) if table.kind[n] == Kind.MODEL]
        expected += [i for n in nodes for i in range(table.start[n], table.stop[n])]
    assert path_tokens(found).tolist() == expected
    assert found.length.sum() == len(expected)
    assert len(set(expected)) < len(expected), "the first turn is read by both branches"
    assert found.group[-3:].tolist() == [table.prompt[n] for n in found.node[-3:]]


MORE = [Prompt(100 + i, "", (i,), "") for i in range(2)]


def test_further_prompts_join_at_the_end():
    asked = []

    def add(k, ids):
        asked.append((k, ids.tolist()))
        return [p for p in MORE if p.id not in ids][:k]

    candidates = candidates_of(add=add)
    outcomes = candidates.sample(plan_of(1, 2, 0, further=1))
    assert candidates.ids.tolist() == [40, -3, 8, 100]
    assert outcomes.trials.tolist() == [1, 2, 0, 0]
    outcomes = candidates.sample(plan_of(0, 0, 1, 2, further=5))
    assert candidates.ids.tolist() == [40, -3, 8, 100, 101], "as many as there are"
    assert outcomes.trials.tolist() == [1, 2, 1, 2, 0]
    assert asked == [(1, [40, -3, 8]), (5, [40, -3, 8, 100])]
    outcomes = candidates.sample(plan_of(1, 0, 0, 0, 1))
    assert outcomes.trials.tolist() == [2, 2, 1, 2, 1]
    found = candidates.responses()
    assert np.bincount(found.row).tolist() == [2, 2, 1, 2, 1]
    assert found.group.tolist() == candidates.ids[found.row].tolist()


class ByEntropy:
    """An advantage that reads the entropies."""

    reads = ("entropy",)

    def __call__(self, rewards, group, length, columns):
        return PerResponse(maxrl)(rewards, group, length, columns) * columns["entropy"]


ON_POLICY = PerResponse(maxrl)


@pytest.mark.parametrize(
    ("advantage", "settings", "runs"),
    [
        (ON_POLICY, {}, 1),
        (ON_POLICY, {"minibatches": 2}, 1 + 2),
        (ON_POLICY, {"epochs": 2}, 1 + 2),
        (ByEntropy(), {}, 1 + 1),
        # One pass fills what the advantage reads and what the loss reads.
        (ByEntropy(), {"minibatches": 2}, 1 + 2),
    ],
)
def test_a_method_that_asks_for_no_column_makes_no_extra_pass(advantage, settings, runs):
    policy, calls = SharedPrefixLM(tiny()), []
    update = PolicyUpdate(
        policy=policy, loss=PolicyLoss(), optimize=lambda: 1.0, backward=torch.Tensor.backward,
        settings=UpdateSettings(**settings), ranks=Ranks(), step_on_no_signal=True,
    )  # fmt: skip
    pieces = Pieces(
        success=DiscountedBeta(), allocator=UniformAllocator(), engine=SharedPrefixEngine(policy),
        verifier=even, advantage=advantage, loss=update.loss, n0=16,
    )  # fmt: skip
    candidates = candidates_of(pieces.engine, fill=update.fill, reads=advantage.reads)

    def learn(responses, advantage, weight):
        # All are packed into one row if all learn.
        return update(responses, advantage + 1e-3, weight)

    with policy.register_forward_pre_hook(lambda *_: calls.append(1)):
        record = run_step(pieces, candidates, learn)
    assert len(calls) == runs
    # The diagnostics are of the policy as it sampled, whichever pass they come from.
    assert record.learned.metrics["engine/logp_gap"] < 1e-4
    assert record.learned.metrics["policy/entropy"] > 0
