"""The checkpoints of a run folder."""

import re
from pathlib import Path
from typing import Any

import torch
from torch import nn

from waterline.runs import BadInput, atomic_write


class Checkpoints:
    """``last.pt`` to resume from, ``step-<n>.pt`` and ``final.pt`` with the policy alone.

    Files are plain dicts of tensors and numbers, written whole or not at all.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.last = self.folder / "last.pt"
        self.final = self.folder / "final.pt"

    def at(self, step: int) -> Path:
        return self.folder / f"step-{step}.pt"

    def kept(self) -> list[int]:
        """The steps whose weights were kept."""
        names = (re.fullmatch(r"step-(\d+)", file.stem) for file in self.folder.glob("*.pt"))
        return sorted(int(match[1]) for match in names if match)

    def require(self, checkpoint: str | int) -> Path:
        """The file of ``checkpoint``, 'final' or a step.

        Raises:
            BadInput: There is none.
        """
        path = self.final if str(checkpoint) == "final" else self.folder / f"step-{checkpoint}.pt"
        if not path.is_file():
            raise BadInput(
                f"{self.folder.parent} has no checkpoint {str(checkpoint)!r}: finish the run, or "
                "choose a step whose weights were kept "
                f"({', '.join(map(str, self.kept())) or 'none'})."
            )
        return path

    def save(self, path: Path, state: dict[str, Any]) -> None:
        # Streamed to the disk: a copy in memory would double what a large policy takes.
        atomic_write(path, lambda file: torch.save(state, file))

    def resume_state(self) -> dict[str, Any] | None:
        """What ``last.pt`` holds, None when the run never reached a checkpoint."""
        return load_checkpoint(self.last) if self.last.exists() else None


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """A checkpoint's dict on the CPU.

    Raises:
        BadInput: The file is missing, or is no checkpoint of this package.
    """
    file = Path(path)
    if not file.is_file():
        raise BadInput(
            f"The checkpoint {file} is missing: train it first, or name another file with "
            "base.path=."
        )
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise BadInput(f"{file} cannot be read ({error.strerror}): name another file.") from error
    except Exception as error:  # a file that was cut off or is another's fails in any way
        raise BadInput(
            f"{file} is no whole checkpoint of this package: name another file with base.path=, or "
            "remove it and start its run again."
        ) from error
    if not isinstance(state, dict) or not isinstance(state.get("policy"), dict):
        raise BadInput(f"{file} holds no policy: name a checkpoint that a run has written.")
    return state


def load_weights(policy: nn.Module, path: str | Path) -> None:
    """Puts the weights of a checkpoint into a policy.

    Raises:
        BadInput: There is no such checkpoint, or it is one of another network.
    """
    weights = load_checkpoint(path)["policy"]
    try:
        policy.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise BadInput(
            f"The checkpoint {path} does not fit the network of this configuration: use the "
            "policy.model settings that it was trained with."
        ) from error
