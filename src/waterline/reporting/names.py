"""How methods and normalisations are called in tables and figures."""

from collections.abc import Iterable

METHOD_LABELS = {
    "base": "Base model",
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
