"""A language model's own way from last hidden states to logits, without running the model again."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions


@dataclass
class _Output(BaseModelOutputWithPastAndCrossAttentions):
    """What any base model may be asked for."""

    router_logits: tuple[Tensor, ...] | None = None


class _Known(nn.Module):
    """Stands for a base model whose last hidden states (1, n, d) are known."""

    def __init__(self, hidden: Tensor) -> None:
        super().__init__()
        self.output = _Output(last_hidden_state=hidden)  # type: ignore[arg-type]

    @property
    def decoder(self) -> _Known:
        """Some models, such as OPT, ask their base model for its only part."""
        return self

    def forward(self, *_: Any, **__: Any) -> _Output:
        return self.output


def head_logits(model: PreTrainedModel, hidden: Tensor) -> Tensor:
    """Logits (n, V) at last hidden states (n, d) of ``model.base_model``.

    A shallow copy of the model runs with its base model replaced, so a bias, a scale or a soft cap
    of the logits is the model's own, and the head's weights are read through its modules alone.
    """
    states = hidden.unsqueeze(0)
    head = copy.copy(model)
    head._modules = {**model._modules, model.base_model_prefix: _Known(states)}
    # `forward`, not the call: hooks belong to the whole model, which does not run here.
    logits: Tensor = head.forward(inputs_embeds=states, use_cache=False).logits
    return logits.squeeze(0)
