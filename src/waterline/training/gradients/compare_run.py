"""The methods' gradients at the checkpoints of one run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from waterline.losses import LabelSamples
from waterline.runs import BadInput, RunFolder, as_bad_input, identity
from waterline.runs.paths import opened
from waterline.runs.settings import Threads, Whole, checked
from waterline.training import assemble
from waterline.training.checkpoints import Checkpoints
from waterline.training.gradients.shared_parameters import SharedBatch, compare_gradients
from waterline.training.gradients.tables import GradientTables
from waterline.training.inputs import inputs_of
from waterline.training.labels.batches import StepBatches

log = logging.getLogger("waterline")
Config = Mapping[str, Any]


@checked
def compare_run(
    root: str | Path,
    methods: Sequence[Config],
    *,
    checkpoints: Sequence[int] | None = None,
    batches: Whole = 2,
    resamplings: Whole = 64,
    threads: Threads | None = None,
) -> Path:
    """Writes ``gradients/{cosines,fidelity}.parquet`` of the run in ``root``; gives their folder.

    At each checkpoint the images are those of the ``batches`` steps that follow it, the same for
    all methods. Tables grow by a checkpoint at a time, and a comparison that was stopped goes on
    where it was.

    Args:
        methods: resolved configurations, of which the pieces and the method's name are read.
        checkpoints: steps whose weights were kept; None for all.
        batches: candidate batches per checkpoint.
        resamplings: sampled gradients per batch and method.

    Raises:
        BadInput: The folder holds no run on images, no such checkpoint, or another comparison.
    """
    folder = RunFolder(root)
    config = opened(folder.read_config())
    task = assemble.build_task(config)
    folder.check_inputs(inputs_of({}, task))
    if not task.has_likelihood:
        raise BadInput(f"{folder.root} is no run on images: its likelihood is not known.")
    kept = Checkpoints(folder.checkpoints)
    steps = kept.kept() if checkpoints is None else list(checkpoints)
    files = {step: kept.require(step) for step in steps}
    if not files:
        raise BadInput(f"{folder.root} has kept no checkpoint: finish the run, or name steps.")
    pieces = [(method, assemble.build_pieces(method, None)) for method in methods]
    with as_bad_input():  # a loss that labels do not have
        for _, piece in pieces:
            piece.loss.over_labels(LabelSamples.none(task.classes))
    if not pieces or not all(piece.loss.reads_responses for _, piece in pieces):
        raise BadInput("methods: name at least one, and not ce, with which all are compared.")
    asked = {
        "methods": [identity(method) for method in methods],
        "checkpoints": steps, "batches": batches, "resamplings": resamplings,
    }  # fmt: skip
    assemble.set_threads(threads)
    loaded = StepBatches(task.splits["train"], config["training"]["batch"], config["seed"])
    with folder:
        tables = GradientTables(folder.root / "gradients", asked)
        for step in [step for step in steps if step not in tables.done]:
            policy = assemble.build_policy(config, files[step]).to(assemble.device_of(config))
            cosines, kappas = [], []
            for batch in range(batches):
                shared = SharedBatch.of(policy, loaded[step + batch])
                for method, piece in pieces:
                    where = {"checkpoint": step, "batch": batch, "method": method["method"]}
                    where["n0"] = piece.n0
                    found = compare_gradients(shared, piece, config["seed"], resamplings)
                    cosines += [where | row for row in found[0]]
                    kappas += [where | row for row in found[1]]
            tables.write(step, cosines, kappas)
            log.info("%d of %d checkpoints compared", len(tables.done), len(steps))
    return tables.folder
