"""Any Hugging Face causal language model as a policy that computes a shared prefix once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from waterline.policies.packed import PackedRow
from waterline.policies.tree_attention import NAME, Attends, RowAttention

_PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


class SharedPrefixLM(nn.Module):
    """Log-probabilities of the tokens of packed rows.

    Wraps a causal language model of transformers whose attention is pluggable. The model's
    key-value cache is never used: gradient checkpointing would drop it silently.

    Args:
        model: the language model; its attention implementation is replaced.
        precision: 'float32', or the autocast type 'bfloat16' or 'float16'. Logits are float32.
    """

    def __init__(self, model: PreTrainedModel, precision: str = "float32") -> None:
        super().__init__()
        if precision not in _PRECISIONS:
            raise ValueError(f"policy precision {precision!r}: choose one of {', '.join(_PRECISIONS)}.")
        self.precision = precision
        self.model = model
        model.set_attn_implementation(NAME)

    @property
    def device(self) -> torch.device:
        return self.model.device

    def logits(self, tokens: Tensor, positions: Tensor, keep: Tensor | None, tree: Attends) -> Tensor:
        """Next-token logits (n, V) in float32 at the row indices ``keep`` (n,), or at all of them.

        Args:
            tokens: (L,) token ids. positions: (L,) their positions, passed explicitly.
            tree: what the tokens attend to.
        """
        dtype = _PRECISIONS[self.precision]
        with torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None):
            out = self.model(
                input_ids=tokens.unsqueeze(0),
                position_ids=positions.unsqueeze(0),
                use_cache=False,
                logits_to_keep=0 if keep is None else keep,
                tree=tree,
            )
        return out.logits[0].float()

    def forward(
        self, row: PackedRow, temperature: float = 1.0, entropy: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Log-probabilities (n,) of ``row.target``, and entropies (n,) in nats when asked for.

        Both are of the softmax at ``temperature``.
        """
        device = self.device
        families = [f.to(device) for f in row.layout.families]
        positions = torch.from_numpy(row.layout.positions).to(device)
        logits = self.logits(
            row.tokens.to(device), positions, row.predictor.to(device), RowAttention(families)
        )
        log_probs = (logits / temperature).log_softmax(dim=-1)
        logp = log_probs.gather(1, row.target.to(device).unsqueeze(1)).squeeze(1)
        return logp, -(log_probs.exp() * log_probs).sum(dim=-1) if entropy else None

    @torch.no_grad()
    def prefill(self, row: PackedRow) -> tuple[Tensor, dict[int, tuple[Tensor, Tensor]]]:
        """Logits (n, V) at ``row.predictor`` and each layer's keys and values (G, L, d)."""
        device = self.device
        attention = RowAttention([f.to(device) for f in row.layout.families], keep=True)
        positions = torch.from_numpy(row.layout.positions).to(device)
        logits = self.logits(row.tokens.to(device), positions, row.predictor.to(device), attention)
        assert attention.kept is not None
        return logits, attention.kept

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
