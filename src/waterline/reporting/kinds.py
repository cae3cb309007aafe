"""What a row of a table, or a line of a figure, is: its method, its settings and its name."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

BASE = "base"  # the method of the supervised runs that training starts from
METHOD_LABELS = {
    BASE: "Base model",
    "ce": "Direct CE",
    "reinforce": "REINFORCE",
    "rloo": "RLOO",
    "grpo": "GRPO",
    "dr_grpo": "Dr.GRPO",
    "pkpo": "PKPO",
    "dars_hw": "DARS-HW",
    "maxrl": "MaxRL",
    "sera": "SERA",
    "sera_pilot": "SERA (pilot)",
}
NORMALISATION_LABELS = {
    "": "–",
    "token-mean": "Token-mean",
    "seqnorm": "Seqnorm",
    "sequence-mean": "Sequence-mean",
}


def method_label(method: str) -> str:
    """Return the display name of a method; a method without one is shown by its own name."""
    return METHOD_LABELS.get(method, method)


def normalisation_label(normalisation: str) -> str:
    """Return the display name of a loss normalisation ('' = none, as for the base model)."""
    return NORMALISATION_LABELS.get(normalisation, normalisation)


def rank(known: Iterable[str], name: str) -> tuple[int, str]:
    """Return a sort key: known names in their order, then the others by name."""
    order = list(known)
    return (order.index(name) if name in order else len(order), name)


class Kind(NamedTuple):
    """The settings that name a row; whatever does not tell rows apart is left at its default.

    Runs that sample responses of many tokens are told apart by their loss normalisation. Where a
    response is one token there is none, and ``n0``, the rollouts per prompt, tells them apart
    instead; ``p_hat`` is then '' for exact success probabilities, else the estimate's name.
    """

    normalisation: str = ""
    n0: int | None = None
    method: str = ""
    p_hat: str = ""
    settings: str = ""

    @property
    def label(self) -> str:
        """The name of the row, e.g. 'Token-mean SERA' or 'SERA, N₀ = 16'."""
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


def per_budget(
    methods: Sequence[str], kinds: Iterable[Kind], reference: str | None = None
) -> list[Kind]:
    """Return the expected rows of ``methods``: one at each budget that occurs in ``kinds``.

    A method whose runs have no budget is expected once, and so is a ``reference`` without runs,
    which is compared whatever it spends.
    """
    kinds = list(kinds)
    budgets: list[int | None] = [*sorted({kind.n0 for kind in kinds if kind.n0 is not None})]
    seen = {m: {kind.n0 for kind in kinds if kind.method == m} for m in methods}
    once = [m for m in methods if seen[m] == {None} or (m == reference and not seen[m])]
    return [Kind(method=m) for m in once] + [
        Kind(n0=n0, method=m) for n0 in budgets or [None] for m in methods if m not in once
    ]
