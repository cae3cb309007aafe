"""Whole image runs: what they estimate, measure and write, and images that cannot be used."""

import statistics
from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch

from training.kills import stopped_at
from training.tiny_images import (
    PLAIN,
    TinyTask,
    allocations,
    probabilities,
    run_images,
    tiny_images,
    with_batch_norm,
)
from waterline.policies import ImageClassifier
from waterline.runs import BadInput, State, read_metrics
from waterline.training.evaluate_run import evaluate_run
from waterline.training.labels.batches import StepBatches
from waterline.training.labels.stage import LabelStage
from waterline.training.run import train

DISCOUNT, ALPHA, BETA = 0.75, 0.5, 0.5


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A run over three epochs with estimates by history, and the record of each step."""
    records, step = [], LabelStage.take_step

    def recorded(self, number):
        row = step(self, number)
        records.append(self.record)
        return row

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LabelStage, "take_step", recorded)
        folder = run_images(tmp_path_factory.mktemp("beta"), "success=beta", "training.steps=9")
    return folder, records


def test_history_is_uniform_at_first_and_frozen_within_an_epoch(history):
    folder, records = history
    rows = read_metrics(folder.metrics)[1:]
    assert [row["epoch"] for row in rows] == [0] * 3 + [1] * 3 + [2] * 3
    assert [row["allocation/waterline"] for row in rows] == [0.0] * 3 + [1.0] * 6
    successes, failures = {}, {}
    for first in (0, 3, 6):
        epoch = records[first : first + 3]
        for record in epoch:
            if first == 0:
                assert not record.known.any()
                assert record.outcomes.trials.tolist() == [4] * 4
                continue
            assert record.known.all()
            assert record.outcomes.trials.sum() == 16
            for q, estimate in zip(record.ids.tolist(), record.p_hat.tolist(), strict=True):
                s, f = successes[q], failures[q]
                assert estimate == pytest.approx((ALPHA + s) / (ALPHA + BETA + s + f), rel=1e-14)
        for record in epoch:
            outcome = zip(
                record.ids.tolist(), record.outcomes.trials, record.outcomes.successes, strict=True
            )
            for q, n, k in outcome:
                successes[q] = DISCOUNT * successes.get(q, 0.0) + k
                failures[q] = DISCOUNT * failures.get(q, 0.0) + n - k
    assert len(successes) == 12
    written = allocations(folder.root)
    assert written.query("step <= 3")["p_hat"].isna().all()
    later = np.concatenate([record.p_hat for record in records[3:]])
    np.testing.assert_array_equal(written.query("step > 3")["p_hat"], later)


def test_estimates_are_held_against_the_exact_probabilities(history):
    folder, records = history
    for row, record in zip(read_metrics(folder.metrics)[1:], records, strict=True):
        p_hat, p = record.p_hat.tolist(), record.p.tolist()
        mae = statistics.fmean(abs(a - b) for a, b in zip(p_hat, p, strict=True))
        assert row["success/mae"] == pytest.approx(mae, rel=1e-12)
        if len(set(p_hat)) == 1:  # the prior alone
            assert row["success/pearson"] is None
        else:
            r = statistics.correlation(p_hat, p)
            assert row["success/pearson"] == pytest.approx(r, abs=1e-9)
    assert [row["success/pearson"] is None for row in read_metrics(folder.metrics)[1:4]] == [
        True
    ] * 3


def test_each_step_counts_its_rollouts_and_rewards(history):
    folder, records = history
    rows, total = read_metrics(folder.metrics)[1:], 0
    for row, record in zip(rows, records, strict=True):
        total += 16
        assert row["rollouts/total"] == total
        assert row["reward/mean"] == pytest.approx(record.outcomes.successes.sum() / 16)
        mixed = (record.outcomes.successes > 0) & (
            record.outcomes.successes < record.outcomes.trials
        )
        assert row["groups/mixed_of_batch"] == pytest.approx(mixed.mean())


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    return run_images(tmp_path_factory.mktemp("exact"), "evaluation.every=4", method="ce")


def saved(folder, step):
    policy = ImageClassifier(with_batch_norm(4))
    state = torch.load(folder.checkpoints / f"step-{step}.pt", weights_only=True)
    policy.load_state_dict(state["policy"])
    return policy


def check_probabilities(rows, policy, split):
    images = split.load(range(len(split)), None)
    with torch.no_grad():
        share = policy.eval()(images.pixels).double().softmax(dim=1).numpy()
    own = share[np.arange(len(images.ids)), images.labels]
    assert rows["prompt"].tolist() == images.ids.tolist()
    np.testing.assert_allclose(rows["p"], own, rtol=1e-6)
    assert rows["top1"].tolist() == (share.argmax(axis=1) == images.labels).tolist()


def test_every_run_is_evaluated_from_random_weights_to_its_end(exact):
    rows = probabilities(exact.root)
    assert sorted(set(rows["step"])) == [0, 4, 7]
    for step in (0, 4, 7):
        check_probabilities(
            rows.query("step == @step"), saved(exact, step), TinyTask().splits["dev"]
        )
    fresh = ImageClassifier(with_batch_norm(4, seed=0)).state_dict()
    start = saved(exact, 0).state_dict()
    assert all(torch.equal(start[name], tensor) for name, tensor in fresh.items())


def test_pass_at_k_is_that_of_the_saved_probabilities(exact):
    table = probabilities(exact.root)
    seen = 0
    for row in read_metrics(exact.metrics):
        names = [name for name in row if name.startswith("eval/")]
        if not names:
            continue
        seen += 1
        of_step = table[table["step"] == row["step"]]
        assert row["eval/top1"] == of_step["top1"].mean()
        ks = [int(name.partition("@")[2]) for name in names if "@" in name]
        assert ks == [2**i for i in range(11)]
        for k in ks:
            with localcontext() as context:
                context.prec = 60
                each = [float(1 - (1 - Decimal(p)) ** k) for p in of_step["p"]]
            assert row[f"eval/pass@{k}"] == pytest.approx(statistics.fmean(each), rel=1e-12)
    assert seen == 3


def test_a_finished_run_is_evaluated_on_another_split_once(exact):
    dev = probabilities(exact.root)
    store = evaluate_run(exact.root, split="test")
    check_probabilities(store.at(7, "test"), saved(exact, 7), TinyTask().splits["test"])
    written = store.path.stat().st_mtime_ns
    evaluate_run(exact.root, split="test")
    assert store.path.stat().st_mtime_ns == written
    kept = store.read().query("split == 'dev'").reset_index(drop=True)
    assert kept.equals(dev)
    with pytest.raises(BadInput, match="split 'dve'"):
        evaluate_run(exact.root, split="dve")


def test_cross_entropy_writes_no_rollouts(exact):
    assert not list((exact.root / "allocation").glob("*"))
    names = {name for row in read_metrics(exact.metrics) for name in row}
    sampled = ("reward/", "groups/", "allocation/", "rollouts/", "success/")
    assert not any(name.startswith(sampled) for name in names)
    assert {"loss/value", "grad/norm", "policy/entropy", "lr", "data/unreadable"} <= names


def test_the_entropy_is_that_of_the_labels(tmp_path):
    folder = run_images(tmp_path, "training.steps=1", "evaluation.every=1")
    batch = StepBatches(TinyTask().splits["train"], 4, seed=0)[0]
    with torch.no_grad():
        log_share = saved(folder, 0).train()(batch.images.pixels).double().log_softmax(1)
    expected = float(-(log_share.exp() * log_share).sum(1).mean())
    (row,) = (row for row in read_metrics(folder.metrics) if row["step"] == 1)
    assert row["policy/entropy"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("method", ["sera", "ce"])
def test_the_last_batch_of_an_epoch_may_be_a_single_image(method, tmp_path):
    folder = run_images(tmp_path, "task.train=9", "training.steps=6", method=method)
    rows = read_metrics(folder.metrics)[1:]
    assert [row["epoch"] for row in rows] == [0, 0, 0, 1, 1, 1]
    if method == "ce":
        assert all(row["grad/norm"] > 0 for row in rows)
        return
    table = allocations(folder.root)
    assert table.groupby("step").size().tolist() == [4, 4, 1, 4, 4, 1]
    assert table.groupby("step")["n"].sum().tolist() == [16, 16, 4, 16, 16, 4]
    for epoch in ((1, 2, 3), (4, 5, 6)):
        ids = table[table["step"].isin(epoch)]["prompt"]
        assert sorted(ids) == TinyTask(train=9).splits["train"].ids.tolist()


def test_a_pilot_of_the_whole_budget_leaves_an_empty_round(tmp_path):
    folder = run_images(tmp_path, "allocation.m=4", "training.steps=4", method="sera_pilot")
    table = allocations(folder.root)
    assert table["n"].tolist() == [4] * 16
    assert set(table["p_hat"] * 4) <= {1 / 4, 1, 2, 3, 15 / 4}, "the estimates of the pilot"
    rows = read_metrics(folder.metrics)[1:]
    assert [row["rollouts/total"] for row in rows] == [16, 32, 48, 64]
    assert any(row["groups/mixed_of_batch"] for row in rows)


def test_a_single_image_too_small_for_batch_norm_is_a_sentence(tmp_path):
    settings = ("task.train=9", "policy.model.widths=[4,8,8]")
    with pytest.raises(BadInput, match=r"BatchNorm has no statistics.*frozen_batch_norm") as caught:
        run_images(tmp_path, *settings)
    assert "\n" not in str(caught.value)
    run_images(tmp_path / "frozen", *settings, "policy.frozen_batch_norm=true")


def ids_of_step(step, train=12):
    split = TinyTask(train=train).splits["train"]
    return split.ids[StepBatches(split, 4, seed=0).rows(step)].tolist()


def named(folder):
    lines = [line for line in folder.log.read_text().splitlines() if "cannot be read" in line]
    return [line for line in lines if "left out: " in line]


@pytest.mark.parametrize("method", ["sera", "ce"])
def test_unreadable_images_are_named_once_counted_and_left_out(method, tmp_path, monkeypatch):
    # One image of the first step, and all of the third.
    lost = [ids_of_step(0)[1], *ids_of_step(2)]
    readable = run_images(tmp_path / "whole", method=method)
    configs = tiny_images(tmp_path, f"+task.unreadable={lost}", method=method)
    for stop in (2, 5):  # over restarts, too
        with stopped_at(monkeypatch, stop, late=True):
            train(*configs)
    folder = train(*configs)
    assert folder.state() is State.done
    # The first one's step was done again, for no checkpoint had reached it.
    assert [line.split(" image ")[1].split()[0] for line in named(folder)] == [
        str(i) for i in (lost[0], *lost)
    ]
    rows = read_metrics(folder.metrics)[1:]
    assert [row["data/unreadable"] for row in rows] == [1, 1, 5, 5, 5, 5, 5]
    assert rows[2]["loss/value"] is None
    assert rows[2]["grad/norm"] is None
    assert rows[2]["lr"] == 0.05
    last = torch.load(folder.checkpoints / "last.pt", weights_only=True)
    assert last["unreadable"] == sorted(lost)
    if method == "ce":
        # The later epochs meet the five images among others.
        assert [row["grad/skipped"] for row in rows] == [0, 0, 1, 1, 1, 1, 1]
        return
    ids, all_ids = (
        run_ids.groupby("step")["prompt"].apply(list)
        for run_ids in (allocations(folder.root), allocations(readable.root))
    )
    for step in range(1, 8):
        kept = [i for i in all_ids[step] if i not in lost]
        assert ids.get(step, []) == kept, "the order and the ids of the others are as before"
    counts = allocations(folder.root).groupby("step")["n"].sum()
    assert counts.to_dict() == {step: 4 * len(ids[step]) for step in ids.index}
    assert "step 3 had no signal" not in folder.log.read_text()


def test_an_uninterrupted_run_names_an_unreadable_image_once(tmp_path):
    lost = ids_of_step(0)[1]
    folder = run_images(tmp_path, f"+task.unreadable=[{lost}]")
    assert len(named(folder)) == 1
    assert (
        f"image {lost} ({lost}.png) cannot be read and is left out: truncated" in named(folder)[0]
    )


def test_unreadable_images_of_an_evaluation_are_told_and_left_out(tmp_path):
    folder = run_images(tmp_path, "+task.unreadable=[-44,-38]", "training.steps=1")
    rows = probabilities(folder.root)
    assert rows.query("step == 0")["prompt"].tolist() == [-50, -47, -41, -35]
    assert "2 of 6 images of dev cannot be read" in folder.log.read_text()
    assert read_metrics(folder.metrics)[-1]["eval/pass@1"] == pytest.approx(
        rows.query("step == 1")["p"].mean()
    )
    with pytest.raises(BadInput, match=r"None of the 6 images.*-50\.png.*truncated"):
        run_images(tmp_path / "none", "+task.unreadable=[-50,-47,-44,-41,-38,-35]")


@pytest.mark.parametrize(("image", "step"), [(1009, 1), (-44, 0)])
def test_a_label_that_is_no_class_is_a_sentence(image, step, tmp_path):
    with pytest.raises(BadInput, match=rf"Image {image} has the label 4.*4 classes") as caught:
        run_images(tmp_path, f"+task.mislabelled=[{image}]")
    assert "\n" not in str(caught.value)


def test_a_policy_that_diverges_ends_in_a_sentence_and_leaves_its_images(tmp_path):
    configs = tiny_images(tmp_path, "training.optimizer.lr=1e30")
    with pytest.raises(
        BadInput, match="probability of some label is no number at step 2"
    ) as caught:
        train(*configs)
    assert "\n" not in str(caught.value)
    (file,) = tmp_path.rglob("nan-batch-step-2.pt")
    kept = torch.load(file, weights_only=True)
    assert kept["ids"].tolist() == ids_of_step(1)
    assert kept["pixels"].shape == (4, 1, 8, 8)
    assert kept["done"] == 1


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("policy.model.classes=3",), r"outputs of the shape \(3,\) for 4 classes"),
        ((*PLAIN, "+policy.model.size=6"),
         r"cannot read images of the shape \(1, 8, 8\)"),
        (("task.train=0",), "no prompts in the split 'train'"),
        (("task.train=4", "training.batch=2", "+task.unreadable=[1000,1003,1006,1009]"),
         r"None of the 4 images tried of the split 'train'.*1000\.png \(truncated\)"),
        (("losses.kl=k3", "losses.kl_coef=0.1"), "set kl_coef and entropy_coef to 0"),
        (("losses.entropy_coef=0.1",), "set kl_coef and entropy_coef to 0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_images_is_refused_at_once(overrides, said, tmp_path):
    with pytest.raises(BadInput, match=said) as caught:
        run_images(tmp_path, *overrides)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("config.yaml"))


def test_a_run_may_start_from_the_weights_of_another(exact, tmp_path):
    start = exact.checkpoints / "final.pt"
    folder = run_images(tmp_path, f"base.path={start}", "training.steps=1")
    first = probabilities(folder.root).query("step == 0")
    last = probabilities(exact.root).query("step == 7 and split == 'dev'")
    np.testing.assert_array_equal(first["p"], last["p"])
