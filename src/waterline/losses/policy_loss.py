"""The policy loss as one function call."""

from __future__ import annotations

from torch import Tensor

from waterline.losses.kl import KLEstimator
from waterline.losses.normalisation import Normalisation
from waterline.losses.policy import PolicyLoss


def policy_loss(
    *,
    logp: Tensor,
    old_logp: Tensor,
    advantage: Tensor,
    weight: Tensor,
    mask: Tensor,
    ref_logp: Tensor | None = None,
    entropy: Tensor | None = None,
    normalisation: Normalisation = "token-mean",
    length_cap: int | None = None,
    clip_low: float | None = None,
    clip_high: float | None = None,
    dual_clip: float | None = None,
    kl: KLEstimator | None = None,
    kl_coef: float = 0.0,
    entropy_coef: float = 0.0,
    denominator: float | None = None,
) -> Tensor:
    """Loss of R responses of up to T tokens; :class:`PolicyLoss` has the equation and the options.

    Args:
        logp: (R, T) log-probabilities of the sampled tokens, in nats, with gradient.
        old_logp: (R, T) those of the policy that sampled; a constant, so that passing logp itself
            is the on-policy case.
        advantage: (R,) or (R, T); a constant.
        weight: (R,), non-negative; a constant. N0/N_q, or ones for no correction.
        mask: (R, T) bool, True on valid response tokens. What stands elsewhere in any tensor, NaN
            included, has no influence.
        ref_logp: (R, T), needed when kl_coef ≠ 0, else ignored.
        entropy: (R, T) in nats, with gradient, needed when entropy_coef ≠ 0, else ignored.
        normalisation: "token-mean", "seqnorm" or "sequence-mean".
        length_cap: L_cap of seqnorm, in tokens.
        clip_low: lower clip of the ratio at 1 − clip_low; None is off.
        clip_high: upper clip of the ratio at 1 + clip_high; None is off.
        dual_clip: bound of the loss at −A · dual_clip where A < 0; None is off.
        kl: "k1", "k2" or "k3", see :func:`kl_estimate`; None is off.
        kl_coef: factor of the KL.
        entropy_coef: factor of the entropy bonus.
        denominator: D of the whole optimizer step, see :func:`loss_denominator`. The losses of its
            micro-batches, on all ranks, then add up to that of the step, however it is split. None
            takes these R responses for the whole step.

    Returns:
        A scalar in the precision of logp, at least float32. A response without a valid token adds
        0; R = 0 with a denominator gives 0, still joined to the graph of logp.

    Raises:
        ValueError: shapes that do not fit, options that contradict each other, a term without its
            tensors, or a denominator that is not positive.
    """
    loss = PolicyLoss(
        normalisation=normalisation,
        length_cap=length_cap,
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
        kl=kl,
        kl_coef=kl_coef,
        entropy_coef=entropy_coef,
    )
    return loss(
        logp=logp,
        old_logp=old_logp,
        advantage=advantage,
        weight=weight,
        mask=mask,
        ref_logp=ref_logp,
        entropy=entropy,
        denominator=denominator,
    )
