"""What a step leaves open to allocators and verifiers, each tried with a toy of ``tests/toys``."""

import numpy as np
import pandas as pd
import pytest
import torch

from toys.advantages import Discounted
from toys.allocators import (
    Curriculum,
    DynamicSampling,
    LooksOn,
    SkipSolved,
    TwoOfEach,
    plan_of,
)
from toys.scripted import (
    CUT,
    PARTIAL,
    PROMPTS,
    RIGHT,
    RIGHT_OR_WRONG,
    SHORT,
    Step,
    flat,
    model,
    token_logp,
)
from toys.verifiers import NearLabel
from training.kills import finish, start, stopped_at
from training.tiny import differences, record, timeless, tiny
from training.tiny_images import PLAIN, TINY_IMAGES, allocations, tiny_images
from waterline.advantages import PerResponse, rloo
from waterline.allocation import Allocator, UniformAllocator
from waterline.losses import PolicyLoss
from waterline.rollouts import Labels, Ranks
from waterline.runs import BadInput, RunFolder, read_metrics
from waterline.success import Oracle
from waterline.tasks import Prompt
from waterline.tasks.images import Images
from waterline.training.labels.batches import StepImages
from waterline.training.labels.candidates import LabelCandidates
from waterline.training.run import train
from waterline.training.step import Learned, Pieces, run_step

RLOO = PerResponse(rloo)
A, B, C = (prompt.id for prompt in PROMPTS)
MIXED, SOLVED, LOST = (SHORT, RIGHT), (RIGHT,), (CUT, SHORT)


# Labels: a step on images in memory, whose labels are played from a script.


class LabelScript:
    """Plays each image's labels in the order of their sample numbers."""

    responses = "labels"

    def __init__(self, lines):
        self.lines, self.asked = lines, []

    def sample(self, probability, ids, counts, first, key):
        self.asked.append(counts.tolist())
        row = np.repeat(np.arange(len(ids)), counts)
        label = [
            self.lines[int(i)][(f + j) % len(self.lines[int(i)])]
            for i, n, f in zip(ids, counts, first, strict=True)
            for j in range(n)
        ]
        return Labels(row, np.array(label, dtype=np.int64))


class LabelStep:
    """Steps on images with the ids and labels given, 4 classes and uniform log-probabilities."""

    def __init__(self, allocator, lines, verifier, n0=4):
        self.pieces = Pieces(
            success=Oracle(), allocator=allocator, engine=LabelScript(lines), verifier=verifier,
            advantage=RLOO, loss=PolicyLoss(), n0=n0,
        )  # fmt: skip

    def __call__(self, images, spare=()):
        def loaded(chosen):
            ids = np.array([i for i, _ in chosen], dtype=np.int64)
            labels = np.array([label for _, label in chosen], dtype=np.int64)
            step = StepImages(ids, Images(torch.zeros(len(ids), 1), ids, labels))
            return step, torch.full((len(ids), 4), 0.25).double().log()

        self.candidates = LabelCandidates(
            *loaded(images), self.pieces.engine, self.pieces.verifier, Ranks(), 0,
            lambda k, ids: loaded([image for image in spare if image[0] not in ids][:k]),
        )  # fmt: skip
        return run_step(self.pieces, self.candidates, self.learn)

    def learn(self, responses, advantage, weight):
        self.learned_from, self.advantage = responses, advantage
        self.table, self.denominator, _ = self.candidates.table(
            self.pieces.loss, responses, advantage, weight
        )
        return Learned({}, stepped=True)


# Further candidates in a later round.


def test_dynamic_sampling_asks_until_enough_groups_are_mixed():
    spare = [Prompt(100 + i, "", (1, i % 2), "") for i in range(4)]
    lines = {A: SOLVED, B: MIXED, C: LOST, 100: LOST, 101: MIXED, 102: MIXED, 103: MIXED}
    step = Step(DynamicSampling(), RLOO, lines)
    done = step(PROMPTS, spare)
    # Three at first, two more for the two that were not mixed, one more for 100.
    assert done.ids.tolist() == [A, B, C, 100, 101, 102]
    assert step.pieces.engine.asked == [
        [4, 4, 4], [0, 0, 0], [0, 0, 0, 4, 4], [0] * 5, [0] * 5 + [4],
    ]  # fmt: skip
    assert done.outcomes.trials.tolist() == [4] * 6
    assert done.outcomes.successes.tolist() == [4, 2, 0, 0, 2, 2]
    assert sorted(set(step.learned_from.group.tolist())) == sorted([B, 101, 102])
    step.pieces.success.end_epoch()
    after, known = step.pieces.success.estimate(done.ids)
    assert known.all(), "the history has seen those that were thrown away"
    np.testing.assert_allclose(after, (0.5 + done.outcomes.successes) / 5)


def test_dynamic_sampling_ends_when_the_training_set_is_used_up():
    spare = [Prompt(100, "", (1, 0), "")]
    step = Step(DynamicSampling(), RLOO, {A: SOLVED, B: MIXED, C: LOST, 100: LOST})
    done = step(PROMPTS, spare)
    assert done.ids.tolist() == [A, B, C, 100]
    assert done.plan.weights.tolist() == [0, 1, 0, 0]
    assert set(step.learned_from.group.tolist()) == {B}


def test_a_step_that_keeps_nothing_learns_nothing():
    step = Step(DynamicSampling(), RLOO, {A: SOLVED, B: LOST, C: LOST})
    done = step(PROMPTS)
    assert len(step.learned_from.node) == 0
    assert done.outcomes.trials.sum() == 12
    assert not any(gradient.any() for gradient in step.gradients)


def test_dynamic_sampling_of_labels():
    lines = {5: (1, 1), 9: (1, 0), 12: (3, 3), 13: (2, 2), 14: (2, 1)}
    step = LabelStep(DynamicSampling(), lines, NearLabel())
    done = step([(5, 1), (9, 1)], spare=[(12, 0), (13, 1), (14, 1)])
    assert done.ids.tolist() == [5, 9, 12, 13, 14]
    np.testing.assert_allclose(done.p, 0.25)
    assert done.outcomes.successes.tolist() == [4, 2, 0, 0, 2]
    assert set(step.learned_from.group.tolist()) == {9, 14}
    assert step.denominator == 8
    assert step.table.shape == (5, 4)


def test_labels_of_which_nothing_is_kept_have_a_step_without_signal():
    step = LabelStep(DynamicSampling(), {5: (1,), 9: (0,)}, NearLabel())
    step([(5, 1), (9, 1)])
    assert not step.table.any()


def test_solved_prompts_are_skipped():
    step = Step(SkipSolved(), RLOO, {A: SOLVED, B: MIXED, C: LOST})
    assert step(PROMPTS).outcomes.trials.tolist() == [4, 4, 4]
    step.pieces.success.end_epoch()
    done = step(PROMPTS)
    assert done.outcomes.trials.tolist() == [0, 4, 4]
    assert done.plan.active.tolist() == [False, True, True]
    # By now A is forgotten by a factor, but its four were all right.
    step.pieces.success.end_epoch()
    assert step(PROMPTS).outcomes.trials.tolist() == [0, 4, 4]


def test_all_prompts_may_be_skipped():
    step = Step(SkipSolved(), RLOO, dict.fromkeys((A, B, C), SOLVED))
    step(PROMPTS)
    step.pieces.success.end_epoch()
    done = step(PROMPTS)
    assert done.outcomes.trials.sum() == 0
    assert len(step.learned_from.node) == 0


def test_a_curriculum_chooses_before_anything_is_sampled():
    easy = Prompt(100, "", (0,), "")
    lines = {A: SOLVED, B: MIXED, C: LOST, 100: SOLVED}
    step = Step(UniformAllocator(), RLOO, lines)
    step([*PROMPTS, easy])
    step.pieces.success.end_epoch()
    step = Step(Curriculum(), RLOO, lines, success=step.pieces.success)
    done = step([PROMPTS[2], PROMPTS[1]], spare=[PROMPTS[0], easy], progress=0.1)
    assert step.pieces.engine.asked == [[0, 0], [0, 0, 4, 4]]
    np.testing.assert_allclose(done.p_hat, [0.1, 0.5, 0.9, 0.9])
    done = step([PROMPTS[2], PROMPTS[1]], spare=[PROMPTS[0], easy], progress=0.9)
    assert step.pieces.engine.asked[2:] == [[0, 0], [4, 4, 0, 0]]
    assert set(step.learned_from.group.tolist()) == {C, B}


def test_a_last_plan_without_rows_for_its_further_prompts_is_refused():
    class Forgets(Allocator):
        def start(self, request):
            return plan_of(np.full(len(request.p), 4), further=1)

    step = Step(Forgets(), RLOO, {A: MIXED, B: MIXED, C: MIXED})
    with pytest.raises(ValueError, match="Forgets asked for further candidates in its last plan"):
        step(PROMPTS[:2], spare=PROMPTS[2:])


# A mask of the responses that are learned from.


def test_responses_that_are_not_kept_are_in_baselines_and_history_but_not_in_the_loss():
    lines = {A: (RIGHT, RIGHT, RIGHT, SHORT), B: (CUT, CUT, RIGHT, CUT)}
    step = Step(TwoOfEach(), RLOO, lines, verifier=PARTIAL)
    done = step(PROMPTS[:2])
    assert done.outcomes.successes.tolist() == [3, 1]
    assert done.outcomes.columns["tokens"].tolist() == [7, 8]
    kept = step.learned_from
    assert kept.group.tolist() == [A, A, A, B, B, B]
    assert kept.success.tolist() == [True, True, False, False, False, True]
    # Reward minus the mean of all three others, kept or not.
    a, b = [1 / 6, 1 / 6, -1 / 2], [-1 / 4, -1 / 4, 3 / 4]
    per_response = torch.tensor([*a, *b]).double()
    expected = per_response.repeat_interleave(torch.from_numpy(kept.length))
    torch.testing.assert_close(step.advantage, expected)

    plain, loss = model(), 0.0
    logp = [[values.sum() for values, _ in token_logp(plain, q)] for q in PROMPTS[:2]]
    places = [(0, RIGHT), (0, RIGHT), (0, SHORT), (1, CUT), (1, CUT), (1, RIGHT)]
    for (row, place), advantage in zip(places, per_response, strict=True):
        loss = loss - advantage * logp[row][place]
    (loss / 11).backward()  # the tokens kept: 2 + 2 + 1 + 2 + 2 + 2
    torch.testing.assert_close(step.gradients[0], flat(plain), rtol=1e-4, atol=1e-7)

    step.pieces.success.end_epoch()
    p, _ = step.pieces.success.estimate([A, B])
    np.testing.assert_allclose(p, [3.5 / 5, 1.5 / 5])


def test_labels_that_are_not_kept_are_in_baselines_and_outcomes_but_not_in_the_loss():
    step = LabelStep(TwoOfEach(), {5: (1, 1, 1, 3), 9: (0, 2, 0, 0)}, NearLabel())
    done = step([(5, 1), (9, 2)])
    assert done.outcomes.successes.tolist() == [3, 1]
    np.testing.assert_allclose(done.outcomes.columns["reward"], [3 + 1 / 3, 1 + 3 / 3])
    # 5: rewards 1 1 1 1/3, the second right one and the wrong one remain; 9: 1/3 1 1/3 1/3.
    expected = torch.zeros(2, 4).double()
    expected[0, 1], expected[0, 3] = 2 * (1 - 7 / 9), 1 / 3 - 1
    expected[1, 0], expected[1, 2] = 2 * (1 / 3 - 5 / 9), 1 - 1 / 3
    torch.testing.assert_close(step.table, expected)
    assert step.denominator == 6


def test_a_mask_and_an_advantage_per_token_fit_each_other():
    step = Step(TwoOfEach(), Discounted(0.5), {A: (RIGHT, RIGHT, RIGHT, SHORT)})
    step(PROMPTS[:1])
    expected = torch.tensor([1 / 12, 1 / 6, 1 / 12, 1 / 6, -1 / 2]).double()
    torch.testing.assert_close(step.advantage, expected)


# What an allocator is given.


def test_requests_and_outcomes_over_epochs():
    LooksOn.seen.clear()
    lines = {A: (RIGHT, SHORT, CUT, CUT), B: (RIGHT, RIGHT, RIGHT, SHORT)}
    step = Step(LooksOn(), RLOO, lines, verifier=PARTIAL)
    for epoch in range(3):
        step(PROMPTS[:2], progress=epoch / 3)
        step.pieces.success.end_epoch()
    requests, outcomes = zip(*LooksOn.seen, strict=True)
    for found in outcomes:
        assert found.trials.tolist() == [4, 4]
        assert found.successes.tolist() == [1, 3]
        assert found.columns["reward"].tolist() == [1 + 0.5 + 0.25 + 0.25, 3.5]
        assert found.columns["tokens"].tolist() == [2 + 1 + 2 + 2, 7]
    assert [request.progress for request in requests] == [0, 1 / 3, 2 / 3]
    assert [request.known.all() for request in requests] == [False, True, True]
    # n and k of one epoch, then 0.75 of them and those of the next.
    trials, successes = ([r.past_trials.tolist() for r in requests],
                         [r.past_successes.tolist() for r in requests])  # fmt: skip
    assert trials == [[0, 0], [4, 4], [7, 7]]
    assert successes == [[0, 0], [1, 3], [1.75, 5.25]]
    np.testing.assert_allclose(requests[2].p, [2.25 / 8, 5.75 / 8])


def test_exact_probabilities_have_no_past():
    LooksOn.seen.clear()
    LabelStep(LooksOn(), {5: (1, 0), 9: (3, 3)}, NearLabel())([(5, 1), (9, 1)])
    ((request, outcomes),) = LooksOn.seen
    assert request.past_trials is None
    np.testing.assert_allclose(request.p, 0.25)
    assert outcomes.columns.keys() == {"reward"}
    np.testing.assert_allclose(outcomes.columns["reward"], [2 + 2 / 2, 4 / 3])


def test_a_run_hands_its_progress_and_its_past_to_the_allocator(base, tmp_path):
    LooksOn.seen.clear()
    train(*tiny(tmp_path, f"base.path={base}", "allocation._target_=toys.allocators.LooksOn",
                "training.steps=5", "evaluation.every=0", method="rloo"))  # fmt: skip
    requests = [request for request, _ in LooksOn.seen][-5:]
    # Four steps are an epoch.
    np.testing.assert_allclose([request.progress for request in requests], np.arange(5) / 5)
    assert [request.past_trials.tolist() for request in requests] == [[0] * 8] * 4 + [[8] * 8]


# State of an allocator.


@pytest.mark.slow
def test_the_state_of_an_allocator_survives_a_kill(base, tmp_path, monkeypatch):
    own = (f"base.path={base}", "allocation._target_=toys.allocators.Thrifty",
           "training.checkpoint_every=2", "training.optimizer.lr=3e-3")  # fmt: skip
    whole = record(train(*tiny(tmp_path / "whole", *own, method="rloo")).root)
    configs = tiny(tmp_path / "stopped", *own, method="rloo")
    for step in (3, 4, 7):
        with stopped_at(monkeypatch, step, late=step == 4):
            train(*configs)
    stopped = record(train(*configs).root)
    assert differences(stopped, whole) == []
    counts = {(row["step"], row["n"]) for row in whole["allocation"]}
    assert len(counts) == 9, "one count each step"
    assert {n for _, n in counts} == {7, 8}, "the state decides"
    assert whole["checkpoints"]["last.pt"]["allocator"].keys() == {"mixed"}


# Whole runs.


@pytest.mark.slow
def test_a_run_with_dynamic_sampling(base, tmp_path):
    folder = train(*tiny(tmp_path, f"base.path={base}", "training.steps=4",
                         "allocation._target_=toys.allocators.DynamicSampling",
                         method="rloo"))  # fmt: skip
    rows = [row for row in read_metrics(folder.metrics) if row["step"] > 0]
    given = allocations(folder.root)
    for step, chosen in given.groupby("step"):
        assert chosen["prompt"].is_unique
        assert len(chosen) >= 8
        row = rows[step - 1]
        mixed = round(row["groups/mixed_of_batch"] * len(chosen))
        # The last round may find more than are missing; the set has 32 prompts.
        assert mixed >= 8 or len(chosen) == 32
    assert (given.groupby("step").size() > 8).any()
    assert rows[-1]["rollouts/total"] == given["n"].sum()


def test_image_runs_with_the_toys(tmp_path):
    for name in ("DynamicSampling", "Curriculum", "TwoOfEach"):
        folder = image_run(tmp_path / name, f"allocation._target_=toys.allocators.{name}")
        given = allocations(folder.root)
        assert given["step"].nunique() == 7
        if name != "TwoOfEach":
            assert (given.groupby("step").size() > 4).any()
        if name == "Curriculum":
            assert (given.groupby("step")["n"].apply(lambda n: (n > 0).sum()) == 4).all()


def image_run(results, *overrides):
    return train(*tiny_images(results, *PLAIN, *overrides, method="rloo"))


@pytest.mark.parametrize("name", ["KeepsNothing", "SamplesNothing"])
def test_steps_without_a_response_to_learn_from_are_counted_as_skipped(base, tmp_path, name):
    toy = f"allocation._target_=toys.allocators.{name}"
    mazes = tiny(tmp_path / "mazes", f"base.path={base}", "training.steps=2", "evaluation.every=0",
                 toy, method="rloo")  # fmt: skip
    for folder in (image_run(tmp_path / "images", "training.steps=2", toy), train(*mazes)):
        assert read_metrics(folder.metrics)[-1]["grad/skipped"] == 2


def final_counts(folder):
    return pd.read_parquet(folder.eval / "counts.parquet")


@pytest.mark.slow
def test_allocation_history_and_pass_at_k_read_success_and_advantages_read_reward(base, tmp_path):
    own = ("training.steps=5", "evaluation.every=4", f"base.path={base}")
    half = train(*tiny(tmp_path / "half", *own, "rewards._target_=toys.verifiers.HalfForAWalk",
                       method="rloo"))  # fmt: skip
    usual = train(*tiny(tmp_path / "usual", *own, method="rloo"))
    rows = [list(read_metrics(f.metrics)) for f in (half, usual)]
    # The same weights and samples at first: equal success, more reward, another gradient.
    assert timeless(rows[0][0]) == timeless(rows[1][0])
    first = rows[0][1], rows[1][1]
    assert first[0]["groups/mixed_of_batch"] == first[1]["groups/mixed_of_batch"]
    assert first[0]["reward/mean"] > first[1]["reward/mean"] + 0.05
    assert first[0]["grad/norm"] != first[1]["grad/norm"]
    a, b = (final_counts(f) for f in (half, usual))
    assert a[a["step"] == 0].equals(b[b["step"] == 0])
    assert (a["c"] == a["c"].round()).all()
    # p̂ after an epoch of eight responses each: whole successes.
    second = allocations(half.root).query("step == 5")
    successes = second["p_hat"] * 9 - 0.5
    np.testing.assert_allclose(successes, successes.round(), atol=1e-9)
    log = usual.log.read_text()
    assert "Traceback" not in log


def test_labels_keep_success_and_reward_apart_end_to_end(tmp_path):
    near = image_run(tmp_path / "near", "rewards._target_=toys.verifiers.NearLabel", "success=beta")
    usual = image_run(tmp_path / "usual", "success=beta")
    rows = [list(read_metrics(f.metrics)) for f in (near, usual)]
    first = rows[0][1], rows[1][1]
    assert first[0]["groups/mixed_of_batch"] == first[1]["groups/mixed_of_batch"]
    assert first[0]["reward/mean"] > first[1]["reward/mean"] + 0.1
    assert first[0]["grad/norm"] != first[1]["grad/norm"]
    second = allocations(near.root).query("step == 4")  # three steps are an epoch
    successes = second["p_hat"] * 5 - 0.5
    np.testing.assert_allclose(successes, successes.round(), atol=1e-9)


def test_fractional_rewards_are_refused_by_an_advantage_for_right_and_wrong():
    from waterline.advantages import maxrl

    step = Step(UniformAllocator(), PerResponse(maxrl), {A: (RIGHT, SHORT)}, verifier=PARTIAL)
    with pytest.raises(ValueError, match="defined for rewards 0 and 1 only"):
        step(PROMPTS[:1])
    Step(UniformAllocator(), PerResponse(maxrl), {A: (RIGHT, SHORT)},
         verifier=RIGHT_OR_WRONG)(PROMPTS[:1])  # fmt: skip


def test_fractional_rewards_are_refused_before_the_base_is_trained(tmp_path):
    config, default = tiny(tmp_path, "rewards._target_=toys.verifiers.HalfForAWalk", method="maxrl")
    with pytest.raises(BadInput, match="defined for rewards 0 and 1 only"):
        train(config, default)
    assert not list(tmp_path.rglob("metrics.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DynamicSampling", "TwoOfEach"])
def test_two_ranks_ask_for_and_keep_what_one_does(tmp_path, name):
    # Odd batches, so that a rank has more images than the other, and may get none of the new ones.
    settings = ("experiment=imagenet/laptop", "method=rloo", *TINY_IMAGES, *PLAIN,
                f"allocation._target_=toys.allocators.{name}", "task.train=11",
                "training.batch=5", "training.steps=6")  # fmt: skip
    runs = []
    for devices in (1, 2):
        results = tmp_path / str(devices)
        finish(start(results, (*settings, f"trainer.devices={devices}")))
        runs.append(RunFolder(next(results.rglob("config.yaml")).parent))
    one, two = (allocations(folder.root) for folder in runs)
    columns = ["step", "prompt", "n"]
    pd.testing.assert_frame_equal(one[columns], two[columns])
    for x, y in zip(*(read_metrics(folder.metrics) for folder in runs), strict=True):
        for key in ("loss/value", "grad/norm", "reward/mean"):
            if x.get(key) is not None:
                assert y[key] == pytest.approx(x[key], rel=1e-4, abs=1e-6), key
