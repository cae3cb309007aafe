"""Single-sample estimators of the KL divergence to a reference policy."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

KLEstimator = Literal["k1", "k2", "k3"]
KL_ESTIMATORS = ("k1", "k2", "k3")
_MAX_EXPONENT = 20.0


def kl_estimate(logp: Tensor, ref_logp: Tensor, kind: KLEstimator) -> Tensor:
    """Estimators of KL(π ‖ π_ref) from samples of π (Schulman 2020).

    With Δ = log π − log π_ref of the sampled token, in nats:

        k1 = Δ                   unbiased, may be negative; as a loss its mean gradient is 0
        k2 = Δ² / 2              biased; as a loss its mean gradient is ∇KL(π ‖ π_ref)
        k3 = exp(−Δ) + Δ − 1     unbiased, never negative; as a loss its mean gradient is
                                 ∇KL(π_ref ‖ π)

    The gradients are those of samples that do not depend on the parameters, as in a policy loss.
    The exponent of k3 is clamped to ±20.

    Args:
        logp: log π of the sampled tokens, any shape, with gradient.
        ref_logp: log π_ref of the same tokens, same shape; a constant.
        kind: "k1", "k2" or "k3".

    Returns:
        The estimate per token, same shape.

    Raises:
        ValueError: an unknown kind.
    """
    difference = logp - ref_logp.detach()
    if kind == "k1":
        return difference
    if kind == "k2":
        return difference.square() / 2
    if kind == "k3":
        return (-difference).clamp(-_MAX_EXPONENT, _MAX_EXPONENT).exp() + difference - 1
    raise ValueError(
        f"losses: the KL estimator {kind!r} is unknown; use one of {', '.join(KL_ESTIMATORS)}."
    )
