"""The checkpoints of a run folder."""

import re
import warnings
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import nn

from waterline.runs import BadInput, atomic_write
from waterline.runs.terminal import file_fault


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
        def write(file: BinaryIO) -> None:
            try:
                torch.save(state, file)
            except RuntimeError as error:  # a full disk is what torch's writer failed on
                raise (at if isinstance(at := error.__context__, OSError) else error) from None

        atomic_write(path, write)

    def resume_state(self) -> dict[str, Any] | None:
        """What ``last.pt`` holds, None when the run never reached a checkpoint."""
        return load_checkpoint(self.last, RESUME) if self.last.exists() else None


# What to do about a checkpoint that cannot be used, by what it was needed for.
_BASE = (
    "name another file with base.path=, or, if this experiment has trained it, move its run "
    "folder away and train it again"
)
EVALUATE = "restore it, choose another checkpoint of the run, or train the run again"
RESUME = "restore it, or move it away and give the same command again: the run starts afresh"


def load_checkpoint(path: str | Path, advice: str = _BASE) -> dict[str, Any]:
    """A checkpoint's dict on the CPU; ``advice`` ends the sentence of an error.

    Raises:
        BadInput: The file is missing, or is no checkpoint of this package.
    """
    file = Path(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the format of other programs' files
            state = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise BadInput(f"The checkpoint {file} is missing: {advice}.") from None
    except Exception as error:  # of any type: the unpickler runs on whatever bytes there are
        if isinstance(error, OSError) and file_fault(error) is not None:
            raise BadInput(f"The checkpoint {file}: {error.strerror}: {advice}.") from error
        what = "is cut short, or no checkpoint" if file.stat().st_size else "is empty"
        raise BadInput(f"{file} {what}: {advice}.") from error
    if not isinstance(state, dict) or not isinstance(state.get("policy"), dict):
        raise BadInput(f"{file} holds no policy, as the checkpoints of runs do: {advice}.")
    if not all(isinstance(name, str) for name in state["policy"]):
        raise BadInput(f"The policy in {file} has weights without names: {advice}.")
    return state


def load_weights(policy: nn.Module, path: str | Path, advice: str = _BASE) -> None:
    """Puts the weights of a checkpoint into a policy.

    Raises:
        BadInput: There is no such checkpoint, or it is one of another network.
    """
    weights = load_checkpoint(path, advice)["policy"]
    try:
        policy.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise BadInput(
            f"The checkpoint {path} does not fit the network of this configuration: use the "
            f"policy.model settings that it was trained with, or {advice}."
        ) from error
