"""What a run reads from files: still the same, and nothing of it is what the run is tested on."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from waterline.runs import BadInput, RunFolder, identity, read_settings
from waterline.runs.paths import opened
from waterline.training.assemble import build_task

log = logging.getLogger("waterline")
Config = Mapping[str, Any]


def inputs_of(config: Config, task: Any) -> dict[str, str]:
    """Digests of what the task reads from files, if anything, and of the base that is named."""
    found = {}
    if digest := getattr(task, "fingerprint", None):
        found["task"] = digest
    path = config.get("base", {}).get("path")
    if path is not None and Path(path).is_file():
        with open(path, "rb") as file:
            found["base.path"] = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    return found


def check_done(folder: RunFolder, read: Config) -> None:
    """Raise BadInput unless a finished run is the one of the settings ``read``.

    Files that have changed since are refused; that they are gone does not matter any more.
    """
    folder.check_identity(identity(read))
    if folder.inputs():
        task = None
        with suppress(BadInput):
            task = build_task(read)
        folder.check_inputs(inputs_of(read, task))


def refuse_overlap(config: Config, task: Any) -> None:
    """Raise BadInput where the base of ``base.path`` has learned from held-out prompts of the run.

    The base's own run, if the file still lies in it, says what it was trained on. Prompts that are
    images cannot be compared.
    """
    folder = RunFolder(Path(config["base"]["path"]).resolve().parent.parent)
    if not folder.config.is_file():
        return
    other = opened(folder.read_config())
    if read_settings({"task": other["task"]}) == read_settings({"task": config["task"]}):
        return
    if task.has_likelihood:
        return
    try:
        learned = build_task(other).splits
    except BadInput as error:
        log.warning("not checked what the base of %s was trained on: %s", folder.root, error)
        return
    held = {prompt.text for split in ("dev", "test") for prompt in task.splits[split]}
    met = sum(p.text in held for split in ("sft", "train") for p in learned.get(split, ()))
    if met:
        raise BadInput(
            f"{met} of the prompts that the base of {folder.root} was trained on are in dev or "
            "test of this run: give both the same task settings, or train another base."
        )
