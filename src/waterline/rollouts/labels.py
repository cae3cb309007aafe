"""Responses that are one class label each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from waterline.runs.seeds import uniforms

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Labels:
    """R sampled labels: ``row`` (R,) int64, the image of each, ascending; ``label`` (R,) int64."""

    row: Ints
    label: Ints

    def joined(self, other: Labels) -> tuple[Labels, Ints]:
        """Both rounds together by image, and where each stood when one followed the other."""
        row = np.concatenate([self.row, other.row])
        order = np.argsort(row, kind="stable")
        return Labels(row[order], np.concatenate([self.label, other.label])[order]), order


class LabelSampler:
    """Draws labels from a classifier's distribution, with replacement.

    A label is the inverse of the cumulative distribution at one uniform, which is addressed by
    (key, prompt id, sample index): the samples of an image depend neither on the other images of
    the batch nor on ranks, and a method that draws more of them begins with the same ones.
    """

    responses: ClassVar[str] = "labels"

    def close(self) -> None:
        """Nothing is held between calls."""

    def sample(
        self, probability: NDArray[np.float64], ids: Ints, counts: Ints, first: Ints, key: int
    ) -> Labels:
        """``counts[q]`` labels for image q, from the sample index ``first[q]`` on.

        Args:
            probability: (b, C), rows that sum to 1 up to rounding.
            ids: (b,) persistent prompt ids. counts, first: (b,), at least 0.
            key: of the step, from :func:`waterline.runs.stream_key`.
        """
        ends = np.cumsum(counts)
        starts = ends - counts
        row = np.repeat(np.arange(len(ids)), counts)
        sample = np.arange(len(row)) - np.repeat(starts - first, counts)
        uniform = uniforms(key, ids[row], sample, 0)[:, 0]
        cumulative = np.cumsum(probability, axis=1)
        label = np.empty(len(row), dtype=np.int64)
        for q in np.flatnonzero(counts).tolist():
            here = slice(starts[q], ends[q])
            # At most the sum itself is missed to rounding; a class of probability 0 never is hit.
            drawn = uniform[here] * cumulative[q, -1]
            label[here] = np.searchsorted(cumulative[q], drawn, side="right")
        return Labels(row, np.minimum(label, probability.shape[1] - 1))
