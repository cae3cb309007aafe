"""Policies: prompts and responses in, log-probabilities and entropies out."""

from waterline.policies.causal_lm import SharedPrefixLM, shared_prefix_lm
from waterline.policies.image_classifier import ImageClassifier, image_classifier
from waterline.policies.layout import TreeLayout
from waterline.policies.packed import PackedRow, pack_segments

__all__ = [
    "ImageClassifier",
    "PackedRow",
    "SharedPrefixLM",
    "TreeLayout",
    "image_classifier",
    "pack_segments",
    "shared_prefix_lm",
]
