"""How likely each prompt is to be solved (NumPy alone)."""

from waterline.success.discounted_beta import DiscountedBeta
from waterline.success.oracle import Oracle
from waterline.success.protocol import SuccessEstimate

__all__ = ["DiscountedBeta", "Oracle", "SuccessEstimate"]
