"""The batch of a step that went wrong, as a file to look into."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch

from waterline.training.checkpoints import Checkpoints
from waterline.training.stage import Stage
from waterline.training.update import Batch


def save_batch(path: Path, batch: Batch, stage: Stage) -> Path:
    """Writes rollouts, advantages, weights and the policy before the update; gives the path."""
    rollouts = asdict(batch.rollouts)
    scores = rollouts.pop("scores")
    state = {
        "done": stage.done,
        "policy": stage.policy.state_dict(),
        "rollouts": {name: torch.from_numpy(array) for name, array in rollouts.items()},
        "scores": {node: list(score) for node, score in scores.items()},
        "node": torch.from_numpy(batch.node),
        "advantage": batch.advantage,
        "weight": batch.weight,
    }
    Checkpoints(path.parent).save(path, state)
    return path
