"""Checks of the options and tensors of the policy loss."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from waterline.losses.kl import KL_ESTIMATORS


def check_clips(clip_low: float | None, clip_high: float | None, dual_clip: float | None) -> None:
    """Raise ValueError for clip ranges that would turn or widen the trust region."""
    if clip_low is not None and not 0 <= clip_low < 1:
        raise ValueError(
            f"clip_low={clip_low}: must be a number of at least 0 and below 1, or null."
        )
    if clip_high is not None and not 0 <= clip_high < math.inf:
        raise ValueError(f"clip_high={clip_high}: must be a number of at least 0, or null.")
    if dual_clip is not None and not 1 < dual_clip < math.inf:
        raise ValueError(f"dual_clip={dual_clip}: must be a number above 1, or null.")


def check_coefficients(kl: str | None, kl_coef: float, entropy_coef: float) -> None:
    """Raise ValueError for coefficients that are not finite, or a KL that is not chosen."""
    if kl is not None and kl not in KL_ESTIMATORS:
        raise ValueError(f"kl={kl}: must be one of {', '.join(KL_ESTIMATORS)}, or null.")
    if kl is None and kl_coef != 0:
        raise ValueError(
            f"kl_coef={kl_coef} needs a KL estimator, and none is chosen: set kl to one of "
            f"{', '.join(KL_ESTIMATORS)}."
        )
    for name, coefficient in (("kl_coef", kl_coef), ("entropy_coef", entropy_coef)):
        if not math.isfinite(coefficient):
            raise ValueError(f"{name}={coefficient}: must be a finite number.")


def check_shapes(
    mask: Tensor,
    weight: Tensor,
    per_token: dict[str, Tensor | None],
    per_response: dict[str, Tensor | None],
) -> None:
    """Raise ValueError unless mask is (R, T) bool, weight (R,), and the others fit.

    per_token must be (R, T), per_response (R,) or (R, T); None is left out.
    """
    if mask.ndim != 2 or mask.dtype != torch.bool:
        raise ValueError(
            f"losses: mask must be a bool tensor (R, T), not {mask.dtype} of shape "
            f"{tuple(mask.shape)}; mark the valid response tokens with True."
        )
    shape, rows = mask.shape, mask.shape[:1]
    allowed: dict[str, tuple[Tensor, tuple[torch.Size, ...]]] = {"weight": (weight, (rows,))}
    allowed |= {name: (x, (shape,)) for name, x in per_token.items() if x is not None}
    allowed |= {name: (x, (rows, shape)) for name, x in per_response.items() if x is not None}
    for name, (x, shapes) in allowed.items():
        if x.shape not in shapes:
            expected = " or ".join(str(tuple(s)) for s in shapes)
            raise ValueError(
                f"losses: {name} has the shape {tuple(x.shape)}, but the mask asks for {expected}; "
                "give every tensor the rows and tokens of the same responses."
            )


def given(x: Tensor | None, name: str, coefficient: str) -> Tensor:
    """The tensor ``name``, or ValueError where ``coefficient`` needs it and it is missing."""
    if x is None:
        raise ValueError(
            f"losses: {coefficient} is not 0 but {name} is missing; pass {name}, or set "
            f"{coefficient} to 0."
        )
    return x
