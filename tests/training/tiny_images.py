"""Image runs of seconds: random images in memory, few classes, small networks."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import nn

from training.tiny import compose, record
from waterline.policies.resnets import small_resnet
from waterline.runs import RunFolder, uniforms
from waterline.tasks.images import Images, Unreadable
from waterline.training.run import train

FIRST = {"train": 1_000, "dev": -50, "test": 2**40}  # ids that are neither dense nor near 0


class TinySplit:
    """Images of a class mean and noise; training adds noise that the key seeds."""

    def __init__(
        self, first: int, n: int, classes: int, size: int, unreadable: Sequence[int],
        mislabelled: Sequence[int],
    ):  # fmt: skip
        self.ids = first + 3 * np.arange(n)
        self.labels = np.arange(n) % classes
        self.unreadable = frozenset(unreadable)
        draw = np.random.default_rng(abs(first)).standard_normal
        means = np.random.default_rng(0).standard_normal((classes, 1, size, size))
        self.pixels = (0.5 * means[self.labels] + draw((n, 1, size, size))).astype(np.float32)
        self.labels[np.isin(self.ids, list(mislabelled))] = classes

    def __len__(self) -> int:
        return len(self.ids)

    def load(self, rows: Sequence[int], key: int | None) -> Images:
        asked = np.asarray(rows, dtype=np.int64)
        broken = np.isin(self.ids[asked], list(self.unreadable))
        kept = asked[~broken]
        pixels = torch.from_numpy(self.pixels[kept])
        if key is not None:
            noise = uniforms(key, self.ids[kept], np.zeros(len(kept)), np.arange(64))
            side = pixels.shape[-1]
            pixels = pixels + torch.from_numpy(noise).float()[:, : side**2].view(-1, 1, side, side)
        lost = self.ids[asked[broken]].tolist()
        unreadable = tuple(Unreadable(i, f"{i}.png", "truncated") for i in lost)
        return Images(pixels, self.ids[kept], self.labels[kept], unreadable)


class TinyTask:
    """Random images of at most 8×8 pixels; ids of any split are unreadable or have no class."""

    has_likelihood: ClassVar[bool] = True

    def __init__(
        self, classes: int = 4, train: int = 12, dev: int = 6, test: int = 6, size: int = 8,
        unreadable: Sequence[int] = (), mislabelled: Sequence[int] = (),
    ):  # fmt: skip
        self.classes = classes
        counts = {"train": train, "dev": dev, "test": test}
        self.splits = {
            name: TinySplit(FIRST[name], n, classes, size, unreadable, mislabelled)
            for name, n in counts.items()
        }


def plain(classes: int, size: int = 8, seed: int = 0) -> nn.Module:
    """A classifier without BatchNorm: one linear layer."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(size**2, classes))


def with_batch_norm(classes: int, seed: int = 0) -> nn.Module:
    """The narrowest small ResNet."""
    return small_resnet(classes, widths=(4, 8), seed=seed)


TINY_IMAGES = (
    "task._target_=training.tiny_images.TinyTask", "~task.seed",
    "task.classes=4", "task.train=12", "task.dev=6", "task.test=6", "task.size=8",
    "policy.model.widths=[4,8]",
    "training.batch=4", "training.steps=7", "training.diagnostics_every=2",
    "training.optimizer.lr=0.05", "training.optimizer.schedule=constant",
    "training.checkpoint_every=3", "training.log_every=1",
    "allocation.n0=4", "allocation.n_max=16", "evaluation.every=3",
    "trainer.threads=1", "trainer.enable_progress_bar=false",
)  # fmt: skip
PLAIN = (
    "policy.model._target_=training.tiny_images.plain",
    "~policy.model.channels", "~policy.model.widths", "~policy.model.blocks",
)  # fmt: skip


def write_folder(root: Path, classes: int = 3, each: int = 4, side: int = 40) -> Path:
    """Noisy images in ``root``/{train,val}/<class>/, as ImageNet's: each class has a colour."""
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 200, (classes, 3))
    for split in ("train", "val"):
        for name in range(classes):
            folder = root / split / f"n{name:08d}"
            folder.mkdir(parents=True)
            for i in range(each):
                pixels = colours[name] + rng.integers(0, 56, (side, side + 5, 3))
                Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{split}_{i}.JPEG")
    return root


def tiny_images(results: Path, *overrides: str, method: str = "sera") -> tuple[dict, dict]:
    """The configuration of a tiny run below ``results``, and the one that names its folder."""
    config = compose(
        *TINY_IMAGES, f"paths.results={results}", *overrides,
        experiment="imagenet/laptop", method=method,
    )  # fmt: skip
    return config, _default(method)


@functools.cache
def _default(method: str) -> dict:
    return compose(experiment="imagenet/laptop", method=method)


def run_images(results: Path, *overrides: str, method: str = "sera") -> RunFolder:
    """A finished tiny image run."""
    return train(*tiny_images(results, *overrides, method=method))


def probabilities(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "eval" / "probabilities.parquet")


def allocations(folder: Path) -> pd.DataFrame:
    """The rows of all steps, in order of steps and of the batch."""
    files = [pd.read_parquet(file) for file in (folder / "allocation").glob("*.parquet")]
    return pd.concat(files).sort_values("step", kind="stable").reset_index(drop=True)


def image_record(folder: Path) -> dict:
    """Everything that a run on images leaves behind but times."""
    return record(folder) | {"probabilities": probabilities(folder).to_dict("records")}
