"""What follows the last step of a run in the same job: its evaluation, its comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hydra

from waterline.launch.configuration import method_configs, plain
from waterline.runs import RunFolder, atomic_write


def finish(folder: RunFolder, config: Mapping[str, Any]) -> None:
    """Does what ``final`` asks for; ``final.json`` in the folder says how far it has come.

    Where the run has several processes, all of them call this and share the evaluation.
    """
    # Imported here, since the process that only starts jobs reads this file too.
    from waterline.rollouts import Ranks
    from waterline.training.evaluate_run import evaluate_run

    ranks = Ranks()
    final, threads = config["final"], config["trainer"]["threads"]
    if ranks.gather(finished(folder, final))[0]:
        return
    if final["split"] is not None:
        if ranks.rank == 0:
            _record(folder, final, "evaluating")
        asked = {name: final[name] for name in ("split", "n", "rewards", "keep_responses")}
        evaluate_run(folder.root, threads=threads, **asked)
    if ranks.rank > 0:
        return
    if final["gradients"]["n0"]:
        _record(folder, final, "comparing")
        settings = hydra.compose("gradients")
        settings.run = str(folder.root)
        compare(plain(settings) | final["gradients"] | {"threads": threads})
    _record(folder, final, "done")


def finished(folder: RunFolder, final: Mapping[str, Any]) -> bool:
    """Whether nothing of what ``final`` asks for is missing; the training does not count."""
    if final["split"] is None and not final["gradients"]["n0"]:
        return True
    return read_final(folder.root) == {"asked": final, "state": "done"}


def read_final(root: Path) -> dict[str, Any]:
    """``final.json``: what was asked for last and its state; empty before anything was asked."""
    try:
        found: dict[str, Any] = json.loads((root / "final.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found


def compare(settings: Mapping[str, Any]) -> Path:
    """The comparison of gradients that ``conf/gradients.yaml`` describes; gives its folder."""
    from waterline.training.gradients.compare_run import compare_run

    asked = dict(settings)
    run, factor = asked.pop("run"), asked.pop("n_max_per_n0")
    for key in ("methods", "n0", "checkpoints"):
        if asked[key] is not None and not isinstance(asked[key], list):
            asked[key] = [asked[key]]
    configs = method_configs(run, asked.pop("methods"), asked.pop("n0"), factor)
    return compare_run(run, configs, **asked)


def _record(folder: RunFolder, final: Mapping[str, Any], state: str) -> None:
    atomic_write(folder.root / "final.json", json.dumps({"asked": final, "state": state}) + "\n")
