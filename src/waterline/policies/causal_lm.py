"""Any Hugging Face causal language model as a policy that computes a shared prefix once."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from waterline.policies.head import head_logits
from waterline.policies.packed import PackedRow
from waterline.policies.scores import token_scores
from waterline.policies.tree_attention import NAME, Attends, RowAttention
from waterline.runs.settings import checked

_PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


class SharedPrefixLM(nn.Module):
    """Log-probabilities of the tokens of packed rows.

    Wraps a causal language model of transformers whose attention is pluggable. The model's
    key-value cache is never used: gradient checkpointing would drop it silently.

    Args:
        model: the language model; its attention implementation is replaced.
        precision: 'float32', or the autocast type 'bfloat16' or 'float16'. Logits are float32.
        logits_at_once: elements (tokens × vocabulary) of the logits of one chunk. More are computed
            chunk by chunk, and again in the backward pass.

    Raises ValueError when the model's layers are not all plain causal attention through the
    pluggable interface: here where the configuration says so, otherwise at the first call.
    """

    responses: ClassVar[str] = "sequences"

    def __init__(
        self, model: PreTrainedModel, precision: str = "float32", logits_at_once: int = 2**25
    ) -> None:
        super().__init__()
        if precision not in _PRECISIONS:
            known = ", ".join(_PRECISIONS)
            raise ValueError(f"policy precision {precision!r}: choose one of {known}.")
        _check_supported(model)
        self.precision = precision
        self.model = model
        model.set_attn_implementation(NAME)
        config = model.config.get_text_config()
        self._layers = int(config.num_hidden_layers)
        # Rows of logits at once.
        self.head_rows = max(1, logits_at_once // int(config.vocab_size))

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The weights by their names in the Hugging Face model, as engines know them."""
        return self.model.named_parameters()

    @property
    def device(self) -> torch.device:
        return self.model.device

    def hidden(
        self, tokens: Tensor, positions: Tensor, keep: Tensor | None, tree: Attends
    ) -> Tensor:
        """Last hidden states (n, d) at the row indices ``keep`` (n,), or at all of them.

        Args:
            tokens: (L,) token ids.
            positions: (L,) their positions, passed explicitly.
            keep: without repetition.
            tree: what the tokens attend to.
        """
        before = tree.calls
        with self._autocast():
            states: Tensor = self.model.base_model(
                input_ids=tokens.unsqueeze(0),
                position_ids=positions.unsqueeze(0),
                use_cache=False,
                tree=tree,
            ).last_hidden_state
        if tree.calls - before != self._layers:
            raise ValueError(
                f"SharedPrefixLM: {tree.calls - before} of the {self._layers} layers of "
                f"{type(self.model).__name__} use the pluggable attention; use a model in which "
                "all do."
            )
        return (states if keep is None else states[:, keep]).squeeze(0)

    def head(self, hidden: Tensor) -> Tensor:
        """Next-token logits (n, V) in float32 at hidden states (n, d)."""
        with self._autocast():
            return head_logits(self.model, hidden).float()

    def forward(
        self,
        row: PackedRow,
        temperature: float = 1.0,
        entropy: bool = False,
        entropy_grad: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Log-probabilities (n,) of ``row.target``, and entropies (n,) in nats when asked for.

        Both are of the softmax at ``temperature``; entropies carry a gradient with
        ``entropy_grad`` alone.
        """
        # All responses of a prompt start from its last token: one distribution serves them.
        keep, which = (t.to(self.device) for t in row.predictor.unique(return_inverse=True))
        attention = RowAttention(row.layout.arrangement.to(self.device))
        return token_scores(
            self.head, self._row_hidden(row, keep, attention), which, row.target.to(self.device),
            rows=self.head_rows, temperature=temperature, entropy=entropy,
            entropy_grad=entropy_grad,
        )  # fmt: skip

    @torch.no_grad()
    def prefill(self, row: PackedRow) -> tuple[Tensor, dict[int, tuple[Tensor, Tensor]]]:
        """Hidden states (n, d) at ``row.predictor``; each layer's keys and values (G, L, d)."""
        attention = RowAttention(row.layout.arrangement.to(self.device), keep=True)
        hidden = self._row_hidden(row, row.predictor.to(self.device), attention)
        assert attention.kept is not None
        return hidden, attention.kept

    def _row_hidden(self, row: PackedRow, keep: Tensor, attention: RowAttention) -> Tensor:
        positions = torch.from_numpy(row.layout.positions).to(self.device)
        return self.hidden(row.tokens.to(self.device), positions, keep, attention)

    def _autocast(self) -> torch.autocast:
        dtype = _PRECISIONS[self.precision]
        # Without the cache each chunk of the head has a cast of its own, so that the gradients of
        # the chunks add up in the precision of the weights.
        return torch.autocast(
            self.device.type, dtype=dtype, enabled=dtype is not None, cache_enabled=False
        )

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Evaluation mode without gradients, the former mode afterwards."""
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.train(was_training)


@checked
def shared_prefix_lm(
    model: Callable[[], PreTrainedModel],
    precision: Literal["float32", "bfloat16", "float16"] = "float32",
    gradient_checkpointing: bool = False,
) -> SharedPrefixLM:
    """The policy of a configuration: a model, how it is computed, and whether activations are kept.

    Raises ValueError for a model or a precision that :class:`SharedPrefixLM` does not take.
    """
    policy = SharedPrefixLM(model(), precision)
    if gradient_checkpointing:
        policy.model.gradient_checkpointing_enable({"use_reentrant": False})
    return policy


def _check_supported(model: PreTrainedModel) -> None:
    name, config = type(model).__name__, model.config.get_text_config()
    taken = inspect.signature(model.forward).parameters
    missing = {"position_ids", "logits_to_keep", "kwargs"} - set(taken)
    pluggable = model._can_set_attn_implementation()
    if missing or not pluggable or model.config.is_encoder_decoder:
        raise ValueError(
            f"SharedPrefixLM: {name} is not a causal language model with pluggable attention and "
            "explicit positions; use one that is, such as Qwen2, Qwen3, Llama, Mistral or GPT-NeoX."
        )
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    if kinds:
        raise ValueError(
            f"SharedPrefixLM: {name} has layers of the kind {', '.join(sorted(kinds))}; use a "
            "model in which all layers are full attention."
        )
