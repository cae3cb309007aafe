"""Losses: from log-probabilities, advantages, weights and a mask to one scalar.

A surrogate per token, a normalisation over the tokens of one optimizer step, and optional terms
(KL to a reference, entropy). Needs PyTorch alone.
"""

from waterline.losses.class_loss import LabelLoss, LabelSamples, class_loss, label_weights
from waterline.losses.cross_entropy import CrossEntropy
from waterline.losses.kl import kl_estimate
from waterline.losses.normalisation import loss_denominator
from waterline.losses.policy import PolicyLoss, policy_loss
from waterline.losses.signal import has_signal
from waterline.losses.surrogate import surrogate

__all__ = [
    "CrossEntropy",
    "LabelLoss",
    "LabelSamples",
    "PolicyLoss",
    "class_loss",
    "has_signal",
    "kl_estimate",
    "label_weights",
    "loss_denominator",
    "policy_loss",
    "surrogate",
]
