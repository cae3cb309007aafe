"""The batch of a step that went wrong, as a file to look into."""

from __future__ import annotations

from pathlib import Path

from waterline.training.checkpoints import Checkpoints
from waterline.training.non_finite import NonFinite
from waterline.training.stage import Stage


def save_batch(path: Path, error: NonFinite, stage: Stage) -> Path:
    """Writes the batch and the policy's weights as a checkpoint; gives the path."""
    state = {"done": stage.done, "policy": stage.policy.state_dict(), **(error.batch or {})}
    Checkpoints(path.parent).save(path, state)
    return path
