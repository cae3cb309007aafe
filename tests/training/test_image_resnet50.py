"""ResNet-50 learns through the paper's own settings, on a few small image files."""

import pytest
import torch
from torchvision.models import resnet50

from training.tiny import compose
from training.tiny_images import write_folder
from waterline.runs import read_metrics
from waterline.training.assemble import build_task
from waterline.training.labels.batches import StepBatches
from waterline.training.run import train

pytestmark = pytest.mark.slow


def first_step(config):
    """Loss and gradient norm of the first batch, by torchvision and torch alone."""
    batch = StepBatches(build_task(config).splits["train"], 8, seed=0)[0].images
    torch.manual_seed(0)
    model = resnet50(num_classes=4).train()
    logits = model(batch.pixels).double()
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(batch.labels))
    loss.backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters()]).double()
    return float(loss.detach()), float(gradient.norm())


@pytest.mark.parametrize("method", ["ce", "sera"])
def test_twenty_steps_of_resnet50(method, tmp_path):
    # Two epochs of warm-up would leave these steps without a learning rate to speak of; from random
    # weights the gradients of eight small images are in the thousands.
    small = (
        f"task.root={write_folder(tmp_path / 'data', classes=4, each=4)}", "task.classes=4",
        "task.crop=32", "task.resize=32", "trainer=cpu", "trainer.devices=1", "trainer.threads=1",
        f"paths.results={tmp_path}", "training.batch=8", "training.steps=20",
        "training.optimizer.warmup_steps=4", "training.optimizer.lr=0.05",
        "training.optimizer.grad_clip=1",
        "training.diagnostics_every=5", "allocation.n0=16", "allocation.n_max=64",
        "evaluation.every=20",
    )  # fmt: skip
    config = compose(*small, experiment="imagenet/paper", method=method)
    run = train(config, compose(experiment="imagenet/paper", method=method))
    rows = read_metrics(run.metrics)
    assert [row["step"] for row in rows] == list(range(21))
    assert [row["step"] for row in rows if "grad/cosine_ce" in row] == [5, 10, 15, 20]
    assert all(0 < row["eval/pass@1"] <= row["eval/pass@1024"] <= 1 for row in (rows[0], rows[-1]))
    weights = torch.load(run.checkpoints / "final.pt", weights_only=True)["policy"]
    assert sum(t.numel() for n, t in weights.items() if "num_batches" not in n) > 23_000_000
    assert all(t.isfinite().all() for t in weights.values())
    assert int(weights["model.bn1.num_batches_tracked"]) == 20
    if method == "ce":
        loss, norm = first_step(config)
        assert rows[1]["loss/value"] == pytest.approx(loss, rel=1e-6)
        assert rows[1]["grad/norm"] == pytest.approx(norm, rel=1e-4)
        losses = [row["loss/value"] for row in rows[1:]]
        assert sum(losses[-5:]) < sum(losses[:5])
        assert all(row["grad/norm"] > 0 for row in rows[1:])
        assert all(row["grad/cosine_ce"] == pytest.approx(1) for row in rows[5::5])
    else:
        assert rows[-1]["rollouts/total"] == 20 * 8 * 16
        assert all(row["allocation/waterline"] for row in rows[1:])
        mixed = [row["groups/mixed_of_batch"] > 0 for row in rows[1:]]
        assert sum(mixed) > 3
        assert [row["grad/norm"] > 0 for row in rows[1:]] == mixed
        measured = [row["grad/cosine_ce"] for row in rows[5::5]]
        assert [cosine is not None for cosine in measured] == mixed[4::5]
        assert all(-1 <= cosine <= 1 for cosine in measured if cosine is not None)
