"""Run folders of image classification, in the format that training and its diagnosis write."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from waterline.allocation import fidelity
from waterline.runs import RunFolder

EXPERIMENT = "imagenet-laptop"
STEPS = 60
TARGETS = {
    "ce": ("NoRollouts", "Oracle"),
    "maxrl": ("UniformAllocator", "Oracle"),
    "sera": ("WaterlineAllocator", "Oracle"),
    "pilot": ("PilotWaterlineAllocator", "Oracle"),
    "history": ("WaterlineAllocator", "DiscountedBeta"),
}


def write_run(
    results: Path,
    method: str,
    seed: int = 0,
    *,
    n0: int = 16,
    p: Sequence[float] = (0.0, 0.25, 0.5, 1.0),
    estimate: str = "",
    settings: str = "",
    experiment: str = EXPERIMENT,
    test: bool = True,
    rows: Sequence[Mapping[str, Any]] | None = None,
) -> RunFolder:
    """Write one finished run; on dev its p grows from a tenth at step 0 to ``p``.

    ``estimate`` is 'pilot' or 'history' where the counts do not come from exact probabilities;
    ``rows`` replaces the rows of its metrics.
    """
    allocator, success = TARGETS[estimate or method]
    folder = RunFolder.of(
        results,
        experiment,
        method,
        settings or ("default" if method == "ce" else f"n0-{n0}{'_' * bool(estimate)}{estimate}"),
        seed,
    )
    config = {
        "experiment": experiment,
        "method": method,
        "seed": seed,
        "allocation": {"_target_": f"waterline.allocation.{allocator}", "n0": n0, "m": 8},
        "success": {"_target_": f"waterline.success.{success}"},
        "losses": {"normalisation": "token-mean"},
    }
    folder.record_start(yaml.safe_dump(config), f"{method}{n0}{estimate}{settings}")
    log = folder.open_metrics()
    for row in metrics(method, n0) if rows is None else rows:
        log.append(row)
    log.close()
    frames = [probabilities(step, "dev", p, 0.1 + 0.9 * step / STEPS) for step in (0, 30, STEPS)]
    frames += [probabilities(STEPS, "test", p)] if test else []
    folder.eval.mkdir(parents=True)
    pd.concat(frames).to_parquet(folder.eval / "probabilities.parquet")
    folder.set_state("done")
    return folder


def metrics(method: str, n0: int) -> list[dict[str, Any]]:
    """A row a step; the cosine every tenth step."""
    sampled = method != "ce"
    rows: list[dict[str, Any]] = []
    for step in range(1, STEPS + 1):
        row: dict[str, Any] = {"step": step, "epoch": (step - 1) // 20, "time/step": 2.0}
        if sampled:
            row |= {
                "rollouts/total": 4 * n0 * step,
                "allocation/waterline": float(method == "sera"),
            }
        if sampled and step % 10 == 0:
            row["grad/cosine_ce"] = 0.01 * step + 0.1 * (method == "sera")
        rows.append(row)
    return rows


def estimates(
    errors: Sequence[float], correlations: Sequence[float | None]
) -> list[dict[str, Any]]:
    """Rows of epochs of two steps each that log these errors and correlations."""
    return [
        {"step": i + 1, "epoch": i // 2, "success/mae": mae, "success/pearson": r}
        for i, (mae, r) in enumerate(zip(errors, correlations, strict=True))
    ]


def probabilities(step: int, split: str, p: Sequence[float], scale: float = 1.0) -> pd.DataFrame:
    scaled = scale * np.asarray(p, dtype=np.float64)
    prompts = np.arange(len(scaled), dtype=np.int64) * 7 + 3
    return pd.DataFrame(
        {"step": step, "split": split, "prompt": prompts, "p": scaled, "top1": scaled >= 0.5}
    )


def write_gradients(
    run: Path,
    cosines: Mapping[tuple[str, int], Sequence[float]],
    counts: Mapping[tuple[str, int], Sequence[int]],
    p: Sequence[float] = (0.01, 0.5),
    units: Sequence[tuple[int, int]] = ((30, 0), (30, 1)),
) -> None:
    """Write ``gradients/``: for each method and N0 its cosines and the counts of the prompts.

    ``cosines`` has one value per unit (checkpoint, batch). The two samples lie 0.1 around it, the
    mean of the samples is 0.1 above it, the expected one 0.2 above it.
    """
    rows, prompts = [], []
    for method, n0 in cosines:
        for (checkpoint, batch), value in zip(units, cosines[method, n0], strict=True):
            about = {"checkpoint": checkpoint, "batch": batch, "method": method, "n0": n0}
            for kind, resample, cosine in (
                ("sample", 0, value - 0.1),
                ("sample", 1, value + 0.1),
                ("mean", -1, value + 0.1),
                ("expected", -1, value + 0.2),
            ):
                rows.append({**about, "kind": kind, "resample": resample, "cosine": cosine})
            n = np.asarray(counts[method, n0], dtype=np.int64)
            prompts.append(
                pd.DataFrame(
                    {
                        **about,
                        "prompt": np.arange(len(n)),
                        "p": p,
                        "n": n,
                        "kappa_before": fidelity(np.asarray(p), np.full(len(n), n0)),
                        "kappa_after": fidelity(np.asarray(p), n),
                        "active": n > 0,
                    }
                )
            )
    (run / "gradients").mkdir()
    pd.DataFrame(rows).to_parquet(run / "gradients" / "cosines.parquet")
    pd.concat(prompts).to_parquet(run / "gradients" / "fidelity.parquet")
