"""The methods' gradients at the checkpoints of one run."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from waterline.runs import BadInput, RunFolder, atomic_write, identity
from waterline.tasks.images import ImageTask
from waterline.training.assemble import build_task, set_threads
from waterline.training.checkpoints import Checkpoints
from waterline.training.images.assemble import build_classifier, build_pieces
from waterline.training.images.batches import StepBatches
from waterline.training.images.shared_parameters import SharedBatch, compare_gradients

log = logging.getLogger("waterline")
Config = Mapping[str, Any]


def compare_run(
    root: str | Path,
    methods: Sequence[Config],
    *,
    checkpoints: Sequence[int] | None = None,
    batches: int = 2,
    resamplings: int = 64,
    threads: int | None = None,
) -> Path:
    """Writes ``gradients/{cosines,fidelity}.parquet`` of the run in ``root``; gives their folder.

    At each checkpoint the images are those of the ``batches`` steps that follow it, the same for
    all methods. What was computed with the same arguments is not computed again.

    Args:
        methods: resolved configurations, of which the pieces and the method's name are read.
        checkpoints: steps whose weights were kept; None for all.
        batches: candidate batches per checkpoint.
        resamplings: sampled gradients per batch and method.

    Raises:
        BadInput: The folder holds no run on images, or no such checkpoint.
    """
    folder = RunFolder(root)
    if not folder.config.exists():
        raise BadInput(
            f"{folder.root} holds no run: name a folder with a config.yaml, as in run=…."
        )
    if batches < 1 or resamplings < 1:
        raise BadInput(f"batches={batches}, resamplings={resamplings}: both at least 1.")
    config = yaml.safe_load(folder.config.read_text())
    task = build_task(config)
    if not isinstance(task, ImageTask):
        raise BadInput(f"{folder.root} is no run on images: its likelihood is not known.")
    steps = _chosen(folder, checkpoints)
    pieces = [build_pieces(method) for method in methods]
    names = [(method["method"], method["allocation"]["n0"]) for method in methods]
    asked = {
        "methods": [identity(method) for method in methods],
        "checkpoints": steps, "batches": batches, "resamplings": resamplings,
    }  # fmt: skip
    out = folder.root / "gradients"
    note = out / "settings.json"
    if note.exists() and json.loads(note.read_text()) == asked:
        return out
    set_threads(threads)
    cosines: list[dict[str, Any]] = []
    fidelities: list[dict[str, Any]] = []
    loaded = StepBatches(task.splits["train"], config["training"]["batch"], config["seed"])
    with folder:
        for step in steps:
            policy = build_classifier(config, Checkpoints(folder.checkpoints).at(step))
            for batch in range(batches):
                shared = SharedBatch.of(policy, loaded[step + batch])
                for (method, n0), piece in zip(names, pieces, strict=True):
                    where = {"checkpoint": step, "batch": batch, "method": method, "n0": n0}
                    found, kappa = compare_gradients(shared, piece, config["seed"], resamplings)
                    cosines += [where | row for row in found]
                    fidelities += [where | row for row in kappa]
            log.info("%d of %d checkpoints compared", steps.index(step) + 1, len(steps))
        out.mkdir(exist_ok=True)
        for name, rows in (("cosines", cosines), ("fidelity", fidelities)):
            sink = io.BytesIO()
            pd.DataFrame(rows).to_parquet(sink, index=False)
            atomic_write(out / f"{name}.parquet", sink.getvalue())
        atomic_write(note, json.dumps(asked, indent=2) + "\n")
    return out


def _chosen(folder: RunFolder, checkpoints: Sequence[int] | None) -> list[int]:
    kept = sorted(
        int(file.stem.removeprefix("step-")) for file in folder.checkpoints.glob("step-*.pt")
    )
    missing = [step for step in checkpoints or () if step not in kept]
    if missing or not kept:
        raise BadInput(
            f"{folder.root} has no checkpoint {missing[0] if missing else ''}: finish the run, or "
            f"choose steps whose weights were kept ({', '.join(map(str, kept)) or 'none'})."
        )
    return kept if checkpoints is None else list(checkpoints)
