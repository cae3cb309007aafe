"""Cosines to the gradient of cross-entropy: along a run, and at shared parameters."""

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from training.label_outcomes import (
    IDS,
    classifier,
    expected_gradient,
    gradient_of,
    pieces_of,
    step_images,
    success_probabilities,
)
from training.tiny import differences
from training.tiny_images import (
    TinyTask,
    allocations,
    image_record,
    run_images,
    tiny_images,
    with_batch_norm,
)
from waterline.advantages import grpo, maxrl
from waterline.allocation import PilotWaterlineAllocator, UniformAllocator, WaterlineAllocator
from waterline.policies import ImageClassifier
from waterline.rollouts import LabelSampler
from waterline.runs import BadInput, read_metrics, stream_key
from waterline.training.gradients.compare_run import compare_run
from waterline.training.gradients.shared_parameters import SharedBatch, compare_gradients
from waterline.training.labels.batches import StepBatches
from waterline.training.labels.stage import cosine

EVERY_STEP = ("evaluation.every=1", "training.steps=5")


def angle(a, b):
    return float(a @ b / (a.norm() * b.norm()))


def saved_policy(folder, step):
    """The policy after ``step`` steps, in training mode."""
    policy = ImageClassifier(with_batch_norm(4))
    state = torch.load(folder.checkpoints / f"step-{step}.pt", weights_only=True)
    policy.load_state_dict(state["policy"])
    return policy.train()


def recomputed(folder, step, n0=4):
    """The cosine of a step from what the run left: one term per rollout, all of autograd."""
    batch = StepBatches(TinyTask().splits["train"], 4, seed=0)[step - 1]
    policy, images = saved_policy(folder, step - 1), batch.images
    logits = policy(images.pixels).double()
    rows = allocations(folder.root).query("step == @step").set_index("prompt")
    counts = rows["n"].loc[images.ids].to_numpy()
    log_probs = logits - logits.logsumexp(dim=1, keepdim=True)
    key = stream_key(0, "rollout", step - 1)
    drawn = LabelSampler().sample(
        log_probs.detach().exp().numpy(), images.ids, counts, np.zeros_like(counts), key
    )
    loss = 0.0
    for q, n in enumerate(counts):
        labels = drawn.label[drawn.row == q].tolist()
        assert len(labels) == n
        right = [float(a == images.labels[q]) for a in labels]
        mean = sum(right) / max(1, len(right))
        for a, reward in zip(labels, right, strict=True):
            advantage = (reward - mean) / mean if mean else 0.0
            loss = loss - n0 / n * advantage * log_probs[q, a] / (len(counts) * n0)
    exact = functional.cross_entropy(logits, torch.from_numpy(images.labels))
    return angle(gradient_of(loss, policy).double(), gradient_of(exact, policy).double())


@pytest.fixture(scope="module", params=["sera", "maxrl"])
def measured(request, tmp_path_factory):
    """A run that measures the cosine at every other step, and keeps its weights at each."""
    results = tmp_path_factory.mktemp(request.param)
    return run_images(results, *EVERY_STEP, "training.diagnostics_every=2", method=request.param)


def test_the_logged_cosine_is_that_of_the_saved_state(measured):
    rows = read_metrics(measured.metrics)
    logged = {row["step"]: row["grad/cosine_ce"] for row in rows if "grad/cosine_ce" in row}
    assert list(logged) == [2, 4], "measured where it is due and nowhere else"
    for step, value in logged.items():
        assert value == pytest.approx(recomputed(measured, step), abs=1e-6)
        assert -1 <= value < 0.999


def without_the_cosine(folder):
    found = image_record(folder.root)
    return found | {
        "metrics": [
            {k: v for k, v in row.items() if k != "grad/cosine_ce"} for row in found["metrics"]
        ]
    }


def test_measuring_changes_no_bit_of_the_run(tmp_path):
    """Weights, optimizer and running statistics of BatchNorm, and all other metrics."""
    runs = [
        run_images(tmp_path / str(every), f"training.diagnostics_every={every}") for every in (0, 1)
    ]
    rows = [read_metrics(run.metrics) for run in runs]
    assert not any("grad/cosine_ce" in row for row in rows[0])
    assert all("grad/cosine_ce" in row for row in rows[1][1:])
    assert differences(*map(without_the_cosine, runs)) == []
    final = torch.load(runs[1].checkpoints / "final.pt", weights_only=True)["policy"]
    assert any(float(final[name].abs().sum()) > 0 for name in final if "running_mean" in name)


def test_cross_entropy_has_a_cosine_of_1(tmp_path):
    run = run_images(tmp_path, "training.diagnostics_every=1", method="ce")
    for row in read_metrics(run.metrics)[1:]:
        assert row["grad/cosine_ce"] == pytest.approx(1.0, abs=1e-12)


def test_it_is_measured_before_clipping(tmp_path):
    """A clip so hard that nothing is left of a gradient in float32."""
    settings = ("training.diagnostics_every=1", "training.steps=2", "evaluation.every=0")
    free = run_images(tmp_path / "a", *settings)
    clipped = run_images(tmp_path / "b", *settings, "training.optimizer.grad_clip=1e-46")
    a, b = (read_metrics(run.metrics)[0] for run in (free, clipped))
    assert a["grad/cosine_ce"] == b["grad/cosine_ce"]
    assert a["grad/norm"] == b["grad/norm"] > 0.1


def test_a_step_without_a_gradient_has_no_angle(tmp_path):
    """Groups of two among many classes are seldom mixed."""
    hopeless = ("task.classes=64", "allocation.n0=2", "training.batch=1", "evaluation.every=0",
                "training.diagnostics_every=1", "training.steps=6")  # fmt: skip
    skipped = run_images(tmp_path / "a", *hopeless, method="maxrl")
    rows = read_metrics(skipped.metrics)
    empty = [row for row in rows if not row["groups/mixed_of_batch"]]
    assert len(empty) > 3
    assert not any("grad/cosine_ce" in row for row in empty)
    assert all(row["grad/norm"] is None for row in empty)
    stepped = run_images(
        tmp_path / "b", *hopeless, "training.step_on_no_signal=true", method="maxrl"
    )
    rows = read_metrics(stepped.metrics)
    empty = [row for row in rows if not row["groups/mixed_of_batch"]]
    assert all(row["grad/cosine_ce"] is None and row["grad/norm"] == 0 for row in empty)


def test_the_cosine_is_accumulated_in_float64():
    a = [torch.full((1_000_000,), 1e-3), torch.tensor([3e4])]
    b = [torch.full((1_000_000,), 1e-3), torch.tensor([-3e-5])]
    x, y = (torch.cat([t.double().flatten() for t in pair]) for pair in (a, b))
    assert cosine(a, b) == pytest.approx(float(x @ y / x.norm() / y.norm()), rel=1e-10)
    assert cosine(a, a) == 1.0
    assert np.isnan(cosine(a, [torch.zeros_like(t) for t in a]))


SAMPLED = {"uniform": (UniformAllocator(), 2), "waterline": (WaterlineAllocator(2, 5, 0.1), 2),
           "uncorrected": (WaterlineAllocator(2, 5, 0.1, correct=False), 2)}  # fmt: skip
BIASES = (3.5, 0.0, -0.5)  # one image is dropped
MAXRL = functools.partial(maxrl)


def comparison(allocator, n0, resamplings, advantage=MAXRL, policy=None):
    policy = policy or classifier(*BIASES)
    pieces = pieces_of(allocator, LabelSampler(), n0, advantage=advantage)
    return compare_gradients(SharedBatch.of(policy, step_images()), pieces, 5, resamplings)


def of_kind(rows, kind):
    return [row["cosine"] for row in rows if row["kind"] == kind]


@pytest.mark.parametrize("name", SAMPLED)
def test_the_expected_gradient_is_the_mean_over_all_outcomes(name):
    allocator, n0 = SAMPLED[name]
    policy = classifier(*BIASES)
    _, mean = expected_gradient(policy, allocator, n0)
    exact = gradient_of(-success_probabilities(policy).log().sum() / 3, policy)
    rows, _ = comparison(allocator, n0, 1, policy=policy)
    assert of_kind(rows, "expected") == [pytest.approx(angle(mean, exact), abs=1e-12)]
    assert angle(mean, exact) < 0.9999


@pytest.mark.parametrize("name", SAMPLED)
def test_the_mean_of_many_resamplings_tends_to_it(name):
    few, _ = comparison(*SAMPLED[name], 4)
    many, _ = comparison(*SAMPLED[name], 400)
    (limit,) = of_kind(many, "expected")
    assert of_kind(few, "expected") == [limit]
    (mean,) = of_kind(many, "mean")
    assert mean == pytest.approx(limit, abs=0.03)
    samples = of_kind(many, "sample")
    assert len(samples) == 400
    assert [row["resample"] for row in many[:400]] == list(range(400))
    # A resampling follows from its number. One without a mixed group has no angle.
    np.testing.assert_array_equal(samples[:4], of_kind(few, "sample"))
    defined = np.array(samples)[~np.isnan(samples)]
    assert defined.mean() < limit - 0.1, "noise lowers the cosine of one sample"


@pytest.mark.parametrize(
    ("allocator", "advantage"),
    [
        (UniformAllocator(), functools.partial(grpo)),
        (UniformAllocator(), functools.partial(maxrl, eps=0.5)),
        (PilotWaterlineAllocator(m=2, n_max=8), MAXRL),
    ],
)
def test_other_advantages_and_a_pilot_have_no_closed_form(allocator, advantage):
    rows, _ = comparison(allocator, 4, 3, advantage)
    assert [row["kind"] for row in rows] == ["sample"] * 3 + ["mean"]


def test_the_fidelity_of_each_image_before_and_after():
    policy = classifier(*BIASES)
    p = success_probabilities(policy).tolist()
    allocator, n0 = SAMPLED["waterline"]
    _, rows = comparison(allocator, n0, 1, policy=policy)
    plan = allocator.plan(p, n0=n0)
    assert [row["prompt"] for row in rows] == IDS.tolist()
    assert [row["active"] for row in rows] == plan.active.tolist()
    assert 0 < plan.active.sum() < 3
    for row, x, n in zip(rows, p, plan.counts.tolist(), strict=True):
        assert row["p"] == pytest.approx(x, rel=1e-12)
        assert row["n"] == n
        assert row["kappa_before"] == pytest.approx(1 - (1 - x) ** (n0 - 1), rel=1e-12)
        after = 1 - (1 - x) ** (n - 1) if n else 0.0
        assert row["kappa_after"] == pytest.approx(after, rel=1e-12)


def test_comparing_leaves_the_running_statistics_alone():
    policy = ImageClassifier(with_batch_norm(4)).train()
    step = StepBatches(TinyTask().splits["train"], 4, seed=0)[0]
    policy(step.images.pixels)
    kept = {k: v.clone() for k, v in policy.state_dict().items() if "running" in k}
    batch = SharedBatch.of(policy, step)
    pieces = pieces_of(UniformAllocator(), LabelSampler(), 4, advantage=MAXRL)
    compare_gradients(batch, pieces, 0, 3)
    for name, value in policy.state_dict().items():
        if "running" in name:
            assert torch.equal(value, kept[name])
    # The statistics are the batch's nevertheless, as in a training step.
    expected = policy(step.images.pixels).double().log_softmax(dim=1)
    torch.testing.assert_close(batch.log_probs, expected)
    assert not torch.allclose(policy.eval()(step.images.pixels).double().log_softmax(1), expected)


@pytest.fixture(scope="module")
def compared_once(tmp_path_factory):
    return run_images(tmp_path_factory.mktemp("ce"), "training.steps=4", method="ce")


@pytest.fixture
def cross_entropy(compared_once):
    yield compared_once
    shutil.rmtree(compared_once.root / "gradients", ignore_errors=True)


def methods(*names):
    return [tiny_images("unused", method=name)[0] for name in names]


def tables(folder):
    return [pd.read_parquet(folder / f"{name}.parquet") for name in ("cosines", "fidelity")]


def test_all_methods_meet_the_same_images_at_the_checkpoints_of_a_run(cross_entropy):
    out = compare_run(cross_entropy.root, methods("maxrl", "sera"), batches=2, resamplings=3)
    cosines, fidelity = tables(out)
    assert sorted(set(cosines["checkpoint"])) == [0, 3, 4]
    assert len(cosines) == 3 * 2 * 2 * (3 + 1 + 1)
    assert len(fidelity) == 3 * 2 * 2 * 4
    of = {m: rows.reset_index(drop=True) for m, rows in fidelity.groupby("method")}
    for column in ("checkpoint", "batch", "prompt", "p", "kappa_before"):
        assert of["maxrl"][column].equals(of["sera"][column])
    assert of["sera"].groupby(["checkpoint", "batch"])["n"].sum().tolist() == [16] * 6

    policy = saved_policy(cross_entropy, 3)
    images = StepBatches(TinyTask().splits["train"], 4, seed=0)[3 + 1].images
    p = policy(images.pixels).double().softmax(1)[torch.arange(4), torch.from_numpy(images.labels)]
    kappa = 1 - (1 - p.detach()) ** 3
    expected = angle(
        gradient_of((kappa * p.log()).sum(), policy).double(),
        gradient_of(p.log().sum(), policy).double(),
    )
    found = cosines.query("checkpoint == 3 and batch == 1 and method == 'maxrl'")
    assert found.query("kind == 'expected'")["cosine"].item() == pytest.approx(expected, abs=1e-6)


def test_a_comparison_is_made_once_and_keeps_to_its_settings(cross_entropy):
    arguments = {"checkpoints": [3], "batches": 1, "resamplings": 2}
    out = compare_run(cross_entropy.root, methods("maxrl"), **arguments)
    written = (out / "cosines.parquet").stat().st_mtime_ns
    compare_run(cross_entropy.root, methods("maxrl"), **arguments)
    assert (out / "cosines.parquet").stat().st_mtime_ns == written
    for other in ({"resamplings": 3}, {"checkpoints": [0, 3]}):
        with pytest.raises(BadInput, match="with other settings"):
            compare_run(cross_entropy.root, methods("maxrl"), **arguments | other)
    with pytest.raises(BadInput, match="with other settings"):
        compare_run(cross_entropy.root, methods("sera"), **arguments)
    assert (out / "cosines.parquet").stat().st_mtime_ns == written


def test_a_stopped_comparison_goes_on_with_the_checkpoint_that_it_was_at(cross_entropy):
    arguments = {"batches": 2, "resamplings": 2}
    whole = tables(compare_run(cross_entropy.root, methods("maxrl", "sera"), **arguments))
    note = cross_entropy.root / "gradients" / "settings.json"
    noted = json.loads(note.read_text())
    assert noted["done"] == [0, 3, 4]
    # Killed after the tables of the third were written and before the note was.
    note.write_text(json.dumps(noted | {"done": [0, 3]}))
    again = tables(compare_run(cross_entropy.root, methods("maxrl", "sera"), **arguments))
    assert json.loads(note.read_text()) == noted
    for a, b in zip(whole, again, strict=True):
        pd.testing.assert_frame_equal(a, b)


def test_a_comparison_that_cannot_be_made_is_refused_in_one_sentence(cross_entropy, tmp_path):
    for root, arguments, said in [
        (tmp_path, {}, "holds no run"),
        (cross_entropy.root, {"checkpoints": [2]}, r"no checkpoint '2'.*\(0, 3, 4\)"),
        (cross_entropy.root, {"batches": 0}, "batches=0"),
        (cross_entropy.root, {"resamplings": 0}, "resamplings=0"),
    ]:
        with pytest.raises(BadInput, match=said) as caught:
            compare_run(root, methods("maxrl"), **arguments)
        assert "\n" not in str(caught.value)
    for chosen in ([], methods("ce")):
        with pytest.raises(BadInput, match="name at least one, and not ce"):
            compare_run(cross_entropy.root, chosen)


@pytest.mark.slow
def test_mistyped_arguments_of_the_command_end_in_one_sentence(cross_entropy):
    root = Path(__file__).parents[2]
    for argument, said in [
        ("n0=x", "n0=x: must be a whole number"),
        ("n_max_per_n0=0", "n_max_per_n0=0: must be a whole number"),
        ("methods=sero", "did you mean 'sera'"),
        ("checkpoints=7", "no checkpoint '7'"),
        ("threads=0", "threads=0"),
    ]:
        done = subprocess.run(
            [sys.executable, "experiments/gradients.py", f"run={cross_entropy.root}", argument],
            cwd=root, env=os.environ | {"PYTHONPATH": f"{root / 'src'}:{root / 'tests'}"},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        (line,) = done.stderr.strip().splitlines()
        assert said in line
