"""One form for advantages per response and per token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

from torch import Tensor


class TokenAdvantage(Protocol):
    """An advantage for every sampled token of R responses.

    The tokens of all responses stand one after another: N = Σ length, response by response. A
    token that several responses share (an inner node of a tree) stands there once for each.
    """

    @property
    def reads(self) -> tuple[str, ...]:
        """The token columns that it asks for, such as 'entropy' and 'old_logp'."""
        ...

    def __call__(
        self, rewards: Tensor, group: Tensor, length: Tensor, columns: Mapping[str, Tensor]
    ) -> Tensor:
        """(R,) rewards, group ids and lengths, and (N,) columns by name → (N,) advantages."""
        ...


class PerResponse:
    """A function f(rewards (R,), group (R,)) → (R,), such as :func:`maxrl`, for every token."""

    reads: ClassVar[tuple[str, ...]] = ()

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.function = function

    def __call__(
        self, rewards: Tensor, group: Tensor, length: Tensor, columns: Mapping[str, Tensor]
    ) -> Tensor:
        """Every token of a response has the response's advantage."""
        return self.function(rewards, group).repeat_interleave(length)
