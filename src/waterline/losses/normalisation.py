"""How the token terms of one optimizer step are brought to one scale."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

Normalisation = Literal["token-mean", "seqnorm", "sequence-mean"]
NORMALISATIONS = ("token-mean", "seqnorm", "sequence-mean")


def check_normalisation(normalisation: str, length_cap: int | None) -> None:
    """Raise ValueError for an unknown normalisation, or for Seqnorm without a length cap."""
    if normalisation not in NORMALISATIONS:
        raise ValueError(
            f"normalisation={normalisation}: must be one of {', '.join(NORMALISATIONS)}."
        )
    if length_cap is not None and length_cap < 1:
        raise ValueError(f"length_cap={length_cap}: must be at least 1 token, or null.")
    if normalisation == "seqnorm" and length_cap is None:
        raise ValueError(
            "length_cap=null: seqnorm divides by a fixed length; set it to the longest response "
            "allowed, in tokens."
        )


def loss_denominator(
    lengths: Tensor, normalisation: Normalisation, length_cap: int | None = None
) -> float:
    """The one denominator of a step.

    With the lengths T_i = Σ_t m_it of all responses i ∈ I of the step, over every rank and
    micro-batch, in tokens:

        token-mean      Σ_i T_i        (SERA Eq. 45)
        seqnorm         |I| · L_cap    (SERA Eq. 44)
        sequence-mean   |I|

    Response weights do not enter. A response of zero tokens counts in |I|: it is a sample like the
    others, with a score of 0. No responses at all: 0.

    Where a step takes several optimizer steps, each on b of its |A| active prompts, each of them is
    divided by b/|A| of this denominator, D·b/|A|. Its own responses do not give its denominator:
    the weights N0/N_q make prompts count the same only under a denominator that does not depend on
    N_q.

    Args:
        lengths: (R,) valid tokens per response.
        normalisation: the rule.
        length_cap: L_cap, in tokens; read by seqnorm only.

    Raises:
        ValueError: an unknown normalisation, seqnorm without a positive length_cap, or lengths
            that are not (R,).
    """
    check_normalisation(normalisation, length_cap)
    if lengths.ndim != 1:
        raise ValueError(
            f"losses: lengths must have the shape (R,), not {tuple(lengths.shape)}; pass the "
            "number of valid tokens of each response of the step."
        )
    if normalisation == "token-mean":
        return float(lengths.sum())
    if normalisation == "seqnorm" and length_cap is not None:
        return float(len(lengths) * length_cap)
    return float(len(lengths))
