"""Pieces named by ``_target_``: finding them, what they accept, and building them."""

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from waterline.runs.checks import BadInput, as_bad_input

TARGET = "_target_"


def build(node: Mapping[str, Any], **handed_in: Any) -> Any:
    """Build the piece that a configuration node names, from exactly the keys that it accepts.

    Args:
        node: ``_target_`` (a dotted name) and settings; keys that the target does not accept are
            ignored, so that every method can be given the settings of any. Nodes below that have
            a ``_target_`` themselves are built first.
        handed_in: Objects that no configuration can hold, such as a policy; they win over the
            node's, and also go only where they are accepted.

    Returns:
        An instance where the target is a class; where it is a function, a partial of it.

    Raises:
        BadInput: The target does not exist, misses an argument, or refuses a value.
    """
    if not is_piece(node):
        raise BadInput(f"A piece needs a {TARGET!r}, and {dict(node)!r} has none: name its class.")
    target = locate(str(node[TARGET]))
    accepted = accepted_keys(target)
    # Only what the target accepts is built: an ignored key may name a piece that is not installed.
    settings = {
        key: _build_inside(value)
        for key, value in node.items()
        if key != TARGET and key not in handed_in and (accepted is None or key in accepted)
    }
    settings |= {k: v for k, v in handed_in.items() if accepted is None or k in accepted}
    if not inspect.isclass(target):
        return functools.partial(target, **settings)
    try:
        inspect.signature(target).bind(**settings)
    except TypeError as error:
        raise BadInput(
            f"{node[TARGET]} cannot be built from {sorted(settings)}: {error}; set it in the "
            "configuration."
        ) from error
    with as_bad_input():
        return target(**settings)


def is_piece(value: object) -> bool:
    """Whether a configuration value is a node that names a piece."""
    return isinstance(value, Mapping) and TARGET in value


def locate(name: str) -> Callable[..., Any]:
    """The class or function with this dotted name.

    Raises:
        BadInput: There is none, or its module cannot be imported.
    """
    module, _, attribute = name.rpartition(".")
    if not module:
        raise BadInput(f"{TARGET} {name!r} is no dotted name: write it as package.module.Class.")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadInput(
            f"{TARGET} {name!r} cannot be imported ({error}); check its spelling, and that its "
            "extra is installed."
        ) from error
    if not callable(found):
        raise BadInput(f"{TARGET} {name!r} is neither a class nor a function: name one of them.")
    return found  # type: ignore[no-any-return]


def accepted_keys(target: Callable[..., Any]) -> frozenset[str] | None:
    """The keywords that a class or function accepts; None when it accepts any (``**kwargs``)."""
    parameters = inspect.signature(target).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(parameter.name for parameter in parameters if parameter.kind in by_keyword)


def required_keys(target: Callable[..., Any]) -> frozenset[str]:
    """The keywords without which a class or function cannot be called."""
    accepted = accepted_keys(target) or frozenset()
    parameters = inspect.signature(target).parameters
    return frozenset(key for key in accepted if parameters[key].default is inspect.Parameter.empty)


def path_keys(target: Callable[..., Any]) -> frozenset[str]:
    """The keywords of a class or function that take a path, as their annotation says."""
    parameters = inspect.signature(target).parameters.values()
    return frozenset(p.name for p in parameters if re.search(r"\bPath\b", str(p.annotation)))


def _build_inside(value: Any) -> Any:
    if is_piece(value):
        return build(value)
    if isinstance(value, Mapping):
        return {key: _build_inside(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_build_inside(inner) for inner in value]
    return value
