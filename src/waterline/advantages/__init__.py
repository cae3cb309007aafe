"""Advantages: from the rewards of sampled responses to one number per response.

Every algorithm is a function ``f(rewards (R,), group (R,), **options) -> (R,)``. Rows with equal
group ids are the responses drawn for one prompt; ids are arbitrary integers in arbitrary order, and
group sizes may differ. Needs PyTorch alone. :class:`TokenAdvantage` is the form that tells tokens
apart, :class:`PerResponse` makes it of any of these functions.
"""

from waterline.advantages.dr_grpo import dr_grpo
from waterline.advantages.grpo import grpo
from waterline.advantages.maxrl import maxrl
from waterline.advantages.per_token import PerResponse, TokenAdvantage
from waterline.advantages.pkpo import pkpo
from waterline.advantages.reinforce import reinforce
from waterline.advantages.rloo import rloo
from waterline.advantages.segments import Segments

__all__ = [
    "PerResponse",
    "Segments",
    "TokenAdvantage",
    "dr_grpo",
    "grpo",
    "maxrl",
    "pkpo",
    "reinforce",
    "rloo",
]
