"""The policy loss with its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from waterline.losses.checks import check_clips, check_coefficients, check_shapes, given
from waterline.losses.class_loss import LabelSamples, label_weights
from waterline.losses.kl import KLEstimator, kl_estimate
from waterline.losses.normalisation import Normalisation, check_normalisation, loss_denominator
from waterline.losses.surrogate import surrogate


@dataclass(frozen=True, kw_only=True)
class PolicyLoss:
    """Loss of R responses of up to T tokens, to be minimised (SERA C.4, Eqs. 44 and 45).

        L = (1/D) Σ_i z_i Σ_t m_it [ ℓ(w_i A_it, ρ_it) + kl_coef · KL_it − entropy_coef · H_it ]

    ℓ is :func:`surrogate`, D is :func:`loss_denominator`; z_i is 1, and 1/T_i for sequence-mean
    (T_i = Σ_t m_it). The response weight w (N0/N_q) multiplies the advantage and nothing else: D
    does not know it, and KL and entropy terms treat every sampled token alike. Everything but
    ℓ = −w A ρ is off by default; on-policy its gradient is −w A ∇log π.

    Args:
        normalisation: "token-mean", "seqnorm" or "sequence-mean".
        length_cap: L_cap in tokens; read by seqnorm only.
        clip_low, clip_high, dual_clip: see :func:`surrogate`; None is off.
        kl, kl_coef: estimator "k1", "k2" or "k3" (see :func:`kl_estimate`) and its factor.
        entropy_coef: factor of the entropy bonus; positive favours entropy.

    Raises:
        ValueError: at construction, options that are out of range or contradict each other.
    """

    reads_responses: ClassVar[bool] = True

    normalisation: Normalisation = "token-mean"
    length_cap: int | None = None
    clip_low: float | None = None
    clip_high: float | None = None
    dual_clip: float | None = None
    kl: KLEstimator | None = None
    kl_coef: float = 0.0
    entropy_coef: float = 0.0

    def __post_init__(self) -> None:
        check_normalisation(self.normalisation, self.length_cap)
        check_clips(self.clip_low, self.clip_high, self.dual_clip)
        check_coefficients(self.kl, self.kl_coef, self.entropy_coef)

    @property
    def needs_reference(self) -> bool:
        """Whether ref_logp must be passed."""
        return self.kl_coef != 0

    @property
    def needs_entropy(self) -> bool:
        """Whether entropy must be passed."""
        return self.entropy_coef != 0

    @property
    def acts_without_advantage(self) -> bool:
        """Whether a term has a gradient where every advantage is 0."""
        return self.needs_reference or self.needs_entropy

    def denominator(self, lengths: Tensor) -> float:
        """D of a step with responses of ``lengths`` (R,) tokens; see :func:`loss_denominator`."""
        return loss_denominator(lengths, self.normalisation, self.length_cap)

    def over_labels(self, sampled: LabelSamples) -> tuple[Tensor, float]:
        """(b, C) weights and denominator for :func:`class_loss`: responses of one token each.

        Raises:
            ValueError: a KL or entropy term, which that loss does not have.
        """
        if self.acts_without_advantage:
            raise ValueError(
                "losses: with labels the loss is the policy gradient alone; set kl_coef and "
                "entropy_coef to 0."
            )
        weights = label_weights(
            sampled.row, sampled.label, sampled.weighted, len(sampled.truth), sampled.classes
        )
        # Without a response every weight is 0, and so is the loss whatever it is divided by.
        return weights, self.denominator(torch.ones(max(1, sampled.responses)))

    def __call__(
        self,
        *,
        logp: Tensor,
        old_logp: Tensor,
        advantage: Tensor,
        weight: Tensor,
        mask: Tensor,
        ref_logp: Tensor | None = None,
        entropy: Tensor | None = None,
        denominator: float | None = None,
    ) -> Tensor:
        """The scalar L, to be minimised.

        Args:
            logp: (R, T) log-probabilities of the sampled tokens, in nats, with gradient.
            old_logp: (R, T) those of the policy that sampled; a constant, so that passing logp
                itself is the on-policy case.
            advantage: (R,) or (R, T); a constant.
            weight: (R,), non-negative; a constant. N0/N_q, or ones for no correction.
            mask: (R, T) bool, True on valid response tokens. What stands elsewhere in any tensor,
                NaN included, has no influence.
            ref_logp: (R, T), needed when kl_coef ≠ 0, else ignored.
            entropy: (R, T) in nats, with gradient, needed when entropy_coef ≠ 0, else ignored.
            denominator: D of the whole optimizer step, see :func:`loss_denominator`. The losses of
                its micro-batches, on all ranks, then add up to that of the step, however it is
                split. None takes these R responses for the whole step.

        Returns:
            A scalar in the precision of logp, at least float32. A response without a valid token
            adds 0; R = 0 with a denominator gives 0, still joined to the graph of logp.

        Raises:
            ValueError: shapes that do not fit, a term without its tensors, or a denominator that is
                not positive.
        """
        check_shapes(
            mask,
            weight,
            {"logp": logp, "old_logp": old_logp, "ref_logp": ref_logp, "entropy": entropy},
            {"advantage": advantage},
        )
        lengths = mask.sum(dim=1)
        if denominator is None:
            denominator = self.denominator(lengths)
        if not denominator > 0:
            raise ValueError(
                f"losses: the denominator of the step is {denominator}, so there is no valid "
                "response token to learn from; skip an update without response tokens."
            )
        dtype = torch.promote_types(logp.dtype, torch.float32)

        def valid(x: Tensor) -> Tensor:
            # Filled, not multiplied: 0 · NaN is NaN, in the value and in the gradient.
            rows = x if x.ndim == 2 else x[:, None]
            return rows.to(dtype).masked_fill(~mask, 0.0)

        logp = valid(logp)
        terms = surrogate(
            logp - valid(old_logp.detach()),
            valid(advantage.detach()) * valid(weight.detach()),
            clip_low=self.clip_low,
            clip_high=self.clip_high,
            dual_clip=self.dual_clip,
        )
        if self.kl is not None and self.needs_reference:
            reference = valid(given(ref_logp, "ref_logp", "kl_coef"))
            terms = terms + self.kl_coef * kl_estimate(logp, reference, self.kl)
        if self.needs_entropy:
            terms = terms - self.entropy_coef * valid(given(entropy, "entropy", "entropy_coef"))
        # Every term is 0 on invalid tokens by now, for all their inputs are.
        per_response = terms.sum(dim=1)
        if self.normalisation == "sequence-mean":
            per_response = per_response / lengths.clamp(min=1)
        return per_response.sum() / denominator


def policy_loss(
    *, logp: Tensor, old_logp: Tensor, advantage: Tensor, weight: Tensor, mask: Tensor,
    ref_logp: Tensor | None = None, entropy: Tensor | None = None,
    denominator: float | None = None, **options: Any,
) -> Tensor:  # fmt: skip
    """The loss of :class:`PolicyLoss` as one call: its tensors, and its ``options``.

    Raises:
        ValueError: options that contradict each other, or tensors that do not fit.
    """
    return PolicyLoss(**options)(
        logp=logp, old_logp=old_logp, advantage=advantage, weight=weight, mask=mask,
        ref_logp=ref_logp, entropy=entropy, denominator=denominator,
    )  # fmt: skip
