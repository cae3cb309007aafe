"""A pretrained language model as the policy's network."""

from typing import TYPE_CHECKING

from waterline.runs.checks import BadInput
from waterline.runs.hub import folder_or_name
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

    where = folder_or_name("policy.model.name", name)
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
