"""A pretrained language model as the policy's network."""

from pathlib import Path
from typing import TYPE_CHECKING

from waterline.runs.checks import BadInput
from waterline.runs.settings import Text, checked

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@checked
def pretrained(name: Text, revision: Text | None = None) -> "PreTrainedModel":
    """A causal language model with its weights, in float32; ``precision`` says how it is computed.

    Args:
        name: of a model of the Hugging Face hub, or a folder of ``save_pretrained``.
        revision: a branch, tag or commit of the hub; None for its main branch.

    Raises BadInput when there is no such model, no connection to the hub, or it is no causal
    language model.
    """
    import torch
    from transformers import AutoModelForCausalLM

    # What looks like a path is one: its absence must not become a question to the hub.
    folder = Path(name).expanduser()
    if (name.startswith((".", "/", "~")) or folder.exists()) and not folder.is_dir():
        raise BadInput(f"policy.model.name={name}: there is no such folder; check the path.")
    where = str(folder) if folder.is_dir() else name
    try:
        return AutoModelForCausalLM.from_pretrained(
            where, revision=revision or "main", dtype=torch.float32
        )
    except (OSError, ValueError, KeyError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise BadInput(
            f"policy.model.name={name}: the model cannot be loaded ({reason}): check the name, the "
            "connection to the hub and HF_HUB_OFFLINE, or name a folder of save_pretrained."
        ) from error


# A run whose policy it is has its base in hand: no supervised start makes one.
pretrained.has_weights = True  # type: ignore[attr-defined]
