"""Policies: prompts and responses in, log-probabilities and entropies out."""

from waterline.policies.causal_lm import SharedPrefixLM
from waterline.policies.image_classifier import ImageClassifier
from waterline.policies.layout import TreeLayout
from waterline.policies.packed import PackedRow, pack_segments

__all__ = ["ImageClassifier", "PackedRow", "SharedPrefixLM", "TreeLayout", "pack_segments"]
