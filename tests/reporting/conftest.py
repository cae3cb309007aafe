"""Run folders with known success probabilities, in the format that training writes."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from waterline.runs import RunFolder

MakeRun = Callable[..., Path]
WATERLINE = ("sera",)  # the methods whose counts follow the history; the others are uniform
STEPS = 60


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Return a function that writes one run below tmp_path/results and returns its folder.

    ``p`` is the success probability of each test question; of its ``n`` responses, round(n·p) are
    correct, so that every expected value can be written down.
    """

    def make(
        method: str = "sera",
        seed: int = 0,
        *,
        p: Sequence[float] = (0.0, 0.25, 0.5, 1.0),
        n: int | Sequence[int] = 16,
        normalisation: str = "token-mean",
        experiment: str = "maze-laptop",
        settings: str = "n0-16",
        state: str | None = "done",
        evaluated: bool = True,
        base: Sequence[float] | None = (0.0, 0.0, 0.125, 0.5),
        rollouts: int = 512,
        waterline: float = 1.0,
    ) -> Path:
        folder = RunFolder.of(tmp_path / "results", experiment, method, settings, seed)
        allocator = "WaterlineAllocator" if method in WATERLINE else "UniformAllocator"
        config = {
            "experiment": experiment,
            "method": method,
            "seed": seed,
            "allocation": {
                "_target_": f"waterline.allocation.{allocator}",
                "n0": 16,
                "n_max": 64,
            },
            "success": {"_target_": "waterline.success.DiscountedBeta"},
            "losses": {"normalisation": normalisation},
            "training": {"steps": STEPS},
        }
        folder.record_start(yaml.safe_dump(config), f"{method}{normalisation}{settings}")
        with_metrics(folder, method, seed, rollouts, waterline)
        if evaluated:
            write_counts(folder, p, n, base)
        if state is None:
            folder.status.unlink()
        else:
            folder.set_state(state)
        return folder.root

    return make


def with_metrics(
    folder: RunFolder, method: str, seed: int, rollouts: int, waterline: float
) -> None:
    noise = np.random.default_rng(seed)
    lift = 0.1 * (method == "sera")
    log = folder.open_metrics()
    for step in range(1, STEPS + 1):
        log.append(
            {
                "step": step,
                "rollouts": rollouts,
                "rollouts/total": rollouts * step,
                "rollouts/tokens": 20 * rollouts,
                "rollouts/total_tokens": 20 * rollouts * step,
                "groups/mixed_of_active": 0.5 + lift + 0.03 * noise.normal(),
                "groups/mixed_of_batch": 0.5 + lift + 0.03 * noise.normal(),
                "allocation/active_fraction": 1.0,
                "allocation/waterline": float(step > round((1 - waterline) * STEPS)),
                "policy/entropy": 0.6 + lift - 0.005 * step + 0.02 * noise.normal(),
                "response/length": 20 + 0.1 * step + noise.normal(),
                # A step without a gradient logs null.
                "grad/norm": None if step == 5 else 0.3 + 0.05 * noise.normal(),
                "time/step": 2.0,
            }
        )
    log.close()


def write_counts(
    folder: RunFolder, p: Sequence[float], n: int | Sequence[int], base: Sequence[float] | None
) -> None:
    stages = {step: 0.3 + 0.7 * step / STEPS for step in (20, 40)}
    frames = [counts_frame(STEPS, "test", p, n)]
    frames += [counts_frame(s, "dev", [f * x for x in p], n) for s, f in stages.items()]
    frames.append(counts_frame(STEPS, "dev", p, n))
    if base is not None:
        frames += [counts_frame(0, split, base, n) for split in ("dev", "test")]
    folder.eval.mkdir(parents=True)
    pd.concat(frames).to_parquet(folder.eval / "counts.parquet")


def counts_frame(step: int, split: str, p: Sequence[float], n: int | Sequence[int]) -> pd.DataFrame:
    tries = np.broadcast_to(np.asarray(n, dtype=np.int64), (len(p),))
    return pd.DataFrame(
        {
            "step": np.int64(step),
            "split": split,
            "prompt": np.arange(len(p), dtype=np.int64) * 7 + 3,
            "n": tries,
            "c": np.rint(tries * np.asarray(p)).astype(np.int64),
        }
    )
