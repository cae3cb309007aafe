"""What tells one row of a table, or one line of a figure, from another."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from waterline.reporting.names import (
    METHOD_LABELS,
    NORMALISATION_LABELS,
    method_label,
    normalisation_label,
    rank,
)

WITHOUT_ROLLOUTS = ("base", "ce")


class Kind(NamedTuple):
    """The settings that name a row; whatever does not tell rows apart is left at its default.

    Runs that sample responses of many tokens are told apart by their loss normalisation. Where a
    response is one token there is none to speak of, and ``n0``, the rollouts per prompt, tells
    them apart instead; ``p_hat`` is then '' for exact success probabilities, else 'pilot' or
    'history'.
    """

    normalisation: str = ""
    n0: int | None = None
    method: str = ""
    p_hat: str = ""
    settings: str = ""

    @property
    def label(self) -> str:
        """How the row is called, e.g. 'Token-mean SERA' or 'SERA, N₀ = 16'."""
        return self.titled(method_label(self.method))

    def titled(self, name: str) -> str:
        """Return the label with ``name`` in the place of the method's."""
        first = f"{normalisation_label(self.normalisation)} " if self.normalisation else ""
        budget = [f"N₀ = {self.n0}"] if self.n0 is not None else []
        # Not where the method's own name says it.
        estimate = [self.p_hat] if self.p_hat and not self.method.endswith(self.p_hat) else []
        named = ", ".join([first + name, *budget, *estimate])
        return f"{named} ({self.settings})" if self.settings else named

    def without_settings(self) -> "Kind":
        """Return what is left when the settings do not tell rows apart."""
        return self._replace(settings="")

    def order(self) -> tuple[object, ...]:
        """Return a sort key: normalisation, budget, then method, in the order of the names."""
        return (
            rank(NORMALISATION_LABELS, self.normalisation),
            self.n0 or 0,
            self.p_hat,
            rank(METHOD_LABELS, self.method),
            self.settings,
        )


def in_order(kinds: Iterable[Kind], expected: Sequence[Kind] = ()) -> list[Kind]:
    """Sort: the expected ones as they are listed, then the others by :meth:`Kind.order`."""
    places = {kind: place for place, kind in enumerate(expected)}

    def key(kind: Kind) -> tuple[object, ...]:
        return places.get(kind.without_settings(), len(places)), kind.order()

    return sorted(kinds, key=key)


def per_budget(methods: Sequence[str], kinds: Iterable[Kind]) -> list[Kind]:
    """Return the rows of ``methods`` at each budget of ``kinds``; cross-entropy has none."""
    budgets: list[int | None] = [*sorted({kind.n0 for kind in kinds if kind.n0 is not None})]
    free = [Kind(method=method) for method in methods if method in WITHOUT_ROLLOUTS]
    return free + [
        Kind(n0=n0, method=method)
        for n0 in budgets or [None]
        for method in methods
        if method not in WITHOUT_ROLLOUTS
    ]
