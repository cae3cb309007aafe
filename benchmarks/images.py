"""Steps per second of a run on images against a bare PyTorch loop, in turns in one process.

    python benchmarks/images.py

Both load the same glyphs, run the same network forwards and backwards, and learn by SGD from the
same number of sampled labels with the MaxRL advantage. The bare loop does nothing else; the run
allocates by the waterline, seeds every sample, and writes its metrics, allocations and checkpoint.
A run's speed is the difference between a long and a short one, so that setting up, evaluating and
closing are left out. The cosine diagnostic is off.
"""

import argparse
import logging
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import hydra
import numpy as np
import torch

from waterline.launch.configuration import plain
from waterline.runs import build
from waterline.training.run import train

Seconds = np.ndarray  # wall, and CPU of this process: the second does not see busy neighbours
CONF = Path(__file__).resolve().parent.parent / "conf"


def config(results: str, steps: int) -> dict[str, Any]:
    """The laptop experiment with SERA, without evaluations and diagnostics."""
    chosen = [
        "experiment=imagenet/laptop", "method=sera", f"paths.results={results}",
        f"training.steps={steps}", "training.diagnostics_every=0", "evaluation.every=0",
        "trainer.threads=1", "trainer.enable_progress_bar=false", "task.dev=64",
    ]  # fmt: skip
    return plain(hydra.compose("train", overrides=chosen))


def now() -> Seconds:
    """Both clocks."""
    return np.array([time.perf_counter(), time.process_time()])


def harness(steps: int) -> Seconds:
    """Of a whole run."""
    with tempfile.TemporaryDirectory() as results:
        settings = config(results, steps)
        began = now()
        train(settings, settings)
        return now() - began


def bare(steps: int) -> Seconds:
    """Of ``steps`` steps of a loop with nothing around it."""
    settings = config("", steps)
    task = build(settings["task"])
    model, images = build(settings["policy"]["model"])(), task.splits["train"]
    rule = {
        key: settings["training"]["optimizer"][key] for key in ("lr", "momentum", "weight_decay")
    }
    optimizer = torch.optim.SGD(model.parameters(), **rule)
    batch, n0 = settings["training"]["batch"], settings["allocation"]["n0"]
    order = torch.randperm(len(images))
    images.load([0], None)  # draws the characters
    began = now()
    for step in range(steps):
        rows = order[torch.arange(step * batch, (step + 1) * batch) % len(images)]
        loaded = images.load(rows.tolist(), None)
        labels = torch.from_numpy(loaded.labels)
        log_probs = model(loaded.pixels).double().log_softmax(dim=1)
        sampled = torch.multinomial(log_probs.detach().exp(), n0, replacement=True)
        reward = (sampled == labels[:, None]).double()
        mean = reward.mean(dim=1, keepdim=True)
        advantage = torch.where(mean > 0, (reward - mean) / mean.clamp(min=1e-12), 0.0)
        weights = torch.zeros_like(log_probs).scatter_add_(1, sampled, advantage)
        loss = -(weights * log_probs).sum() / (batch * n0)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return now() - began


def main() -> None:
    """Print each turn, then the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    ratios = []
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        for repeat in range(options.repeats):
            plainly = bare(options.steps)
            ours = harness(options.steps + 20) - harness(20)
            ratios.append(plainly / ours)
            speeds = [options.steps / seconds for seconds in (plainly, ours)]
            for clock, name in enumerate(("wall", "CPU")):
                print(
                    f"{repeat + 1}, {name}: bare {speeds[0][clock]:.2f} steps/s, run "
                    f"{speeds[1][clock]:.2f} steps/s, ratio {ratios[-1][clock]:.3f}",
                    flush=True,
                )
    wall, cpu = np.median(ratios, axis=0)
    print(
        f"median ratio of run to bare, 1 is equal: {wall:.3f} by wall time, {cpu:.3f} by CPU time"
    )


if __name__ == "__main__":
    main()
