"""A packed row: every token of some prompts and their responses, each shared token once."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from waterline.policies.layout import Ints, TreeLayout


@dataclass(frozen=True)
class PackedRow:
    """One forward pass over a forest of segments.

    ``tokens`` (L,) in the layout's order; ``predictor`` (n,) the row indices whose next-token
    distribution is wanted and ``target`` (n,) the token that each of them is asked about. Several
    entries may share a predictor: all responses of a prompt start from its last token.
    """

    layout: TreeLayout
    tokens: Tensor
    predictor: Tensor
    target: Tensor

    @property
    def length(self) -> int:
        return int(self.tokens.numel())


def pack_segments(parent: Ints, segments: list[Ints], predicted: np.ndarray) -> PackedRow:
    """Packs token segments into a row.

    Args:
        parent: (S,) position of each segment's parent, −1 for roots; parents come first.
        segments: the tokens of each segment.
        predicted: (S,) bool, the segments whose tokens get log-probabilities; not a root, for its
            first token has no predictor.
    """
    layout = TreeLayout(parent, np.array([len(s) for s in segments], dtype=np.int64))
    if (predicted & (parent < 0)).any():
        raise ValueError(
            "pack_segments: a root cannot be predicted; its first token has no prefix."
        )
    tokens = np.concatenate(segments)
    rows = [
        np.arange(layout.start[s], layout.start[s] + layout.length[s]) for s in range(len(parent))
    ]
    predictor, target = [], []
    for s in np.flatnonzero(predicted):
        before = layout.start[parent[s]] + layout.length[parent[s]] - 1
        predictor.append(np.concatenate([[before], rows[s][:-1]]))
        target.append(segments[s])
    empty = [np.zeros(0, dtype=np.int64)]
    return PackedRow(
        layout,
        torch.from_numpy(tokens),
        torch.from_numpy(np.concatenate(predictor or empty)),
        torch.from_numpy(np.concatenate(target or empty)),
    )
