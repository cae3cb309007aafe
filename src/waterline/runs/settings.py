"""Types and ranges of settings, declared once as type hints and checked before anything starts.

A setting of a piece is declared by the signature of its ``_target_``, a setting of another node by
the annotations of a class. ``Annotated`` adds a range: ``lr: Annotated[float, Gt(0)]``.
"""

import dataclasses
import difflib
import functools
import inspect
import json
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Ge, Gt, Le, Len, Lt, MinLen
from pydantic import ConfigDict, TypeAdapter, ValidationError

from waterline.runs.checks import BadInput
from waterline.runs.targets import TARGET, accepted_keys, is_piece, locate, required_keys

F = TypeVar("F", bound=Callable[..., Any])

# A count of something. What is larger is a slip, and overflows somewhere else.
Whole = Annotated[int, Ge(1), Le(2**31 - 1)]
WholeOrZero = Annotated[int, Ge(0), Le(2**31 - 1)]
# What torch and the loaders start; far above any machine's cores they end the process.
Threads = Annotated[int, Ge(1), Le(1024)]
Workers = Annotated[int, Ge(0), Le(1024)]
# Far below what float32 holds, for torch computes with them and their multiples.
Positive = Annotated[float, Gt(0), Le(1e30)]
NotNegative = Annotated[float, Ge(0), Le(1e30)]
# Logits over less than this are no probabilities any more.
Temperature = Annotated[float, Ge(1e-3), Le(1e3)]
Share = Annotated[float, Gt(0), Le(1)]
Text = Annotated[str, MinLen(1)]
# NumPy's and torch's generators take no other seed.
Seed = Annotated[int, Ge(0), Le(2**32 - 1)]


class Piece:
    """The hint of a node with a ``_target_``."""


class Section:
    """The hint of a node without one."""


Declared = Mapping[str, type]
_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_NAMES |= {Path: "a path", type(None): "null"}
_ORDER = {Gt: "above {}", Ge: "of at least {}", Lt: "below {}", Le: "of at most {}"}


def check_settings(
    config: Mapping[str, Any],
    sections: Declared,
    path: str = "",
    handed_in: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> None:
    """Raise BadInput for the first setting that nothing reads, is missing, or has a wrong value.

    Args:
        config: a resolved configuration, or the node of one.
        sections: by dotted path of a node ('' for the whole), the class whose annotations declare
            the settings that are read there besides those that its ``_target_`` accepts. A node
            that neither has a ``_target_`` nor stands here is not checked.
        path: where ``config`` stands in the whole.
        handed_in: by dotted path of a node, arguments of its ``_target_`` that are no settings.
            Empty says nothing of functions: any of their arguments may be missing.
    """
    declared = _declared(sections[path]) if path in sections else {}
    accepted: Mapping[str, Any] | None = {}
    needed = [key for key in declared if not hasattr(sections[path], key)]
    if is_piece(config):
        target, given = locate(str(config[TARGET])), handed_in.get(path, ())
        hints = {k: hint for k, hint in signature_hints(target).items() if k not in given}
        accepted = hints if accepted_keys(target) is not None else None
        # A function may be called with more later: what is known to be handed in has any name.
        if inspect.isclass(target) or (handed_in and not given):
            needed += [key for key in hints if key in required_keys(target)]
    elif path not in sections:
        accepted = None
    before = f"{path}." if path else ""
    for key, value in config.items():
        if key == TARGET:
            continue
        hint = declared.get(key, (accepted or {}).get(key))
        if hint is None:
            if accepted is not None:
                raise _unread(before, str(key), {*declared, *accepted})
            hint = Any
        require(f"{before}{key}", value, hint)
    for key in needed:
        if key not in config:
            raise BadInput(f"The setting {before}{key} is missing: leave it as conf/ has it.")
    # Afterwards: a setting of the whole, such as the seed, may stand in the nodes below it too.
    for key, value in config.items():
        if isinstance(value, Mapping):
            check_settings(value, sections, f"{before}{key}", handed_in)


def check_fields(instance: Any) -> None:
    """Raise BadInput for the first field of a dataclass whose value its hint does not allow.

    Fields that hold objects are left to those.
    """
    hints = signature_hints(cast(Any, type(instance)))
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        if (
            _plain(hints[field.name])
            and (wrong := wrong_value(value, hints[field.name])) is not None
        ):
            raise BadInput(f"{field.name}={_shown(value)}: must be {wrong}.")


def require(name: str, value: Any, hint: Any) -> None:
    """Raise BadInput unless the hint allows ``value``."""
    if isinstance(value, Mapping) and not _plain(hint) and not (hint is Any or _is_section(hint)):
        if not is_piece(value):
            raise BadInput(
                f"{name} has settings but no {TARGET}, so that nothing is made of them: leave its "
                "choice as the experiment has it, or choose one with the name of its group."
            )
        return
    if (wrong := wrong_value(value, hint)) is not None:
        raise BadInput(f"{name}={_shown(value)}: must be {wrong}.")


def checked(call: F) -> F:
    """Decorates a function, or an ``__init__``: it raises BadInput as :func:`check_fields` does.

    The range of a setting then holds for whoever calls it, not for configurations alone.
    """
    signature = inspect.signature(call)

    @functools.wraps(call)
    def checking(*args: Any, **kwargs: Any) -> Any:
        hints = signature_hints(call)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            wrong = wrong_value(value, hints[name]) if _plain(hints[name]) else None
            if wrong is not None:
                raise BadInput(f"{name}={_shown(value)}: must be {wrong}.")
        return call(*args, **kwargs)

    return cast(F, checking)


def wrong_value(value: Any, hint: Any) -> str | None:
    """What ``value`` must be, in words, if the hint does not allow it.

    Values are plain data. Types are strict: true is no number, and neither 4.0 nor "4" is a whole
    number, while 4 is a number; NaN and infinity are none.
    """
    if hint is Any:
        return None
    if not _plain(hint):
        return None if _is_node(value, hint) else f"{_node_words(hint)}"
    try:
        _adapter(hint).validate_json(json.dumps(value, default=_as_plain))
    except ValidationError:
        return in_words(hint)
    return None


@lru_cache
def signature_hints(target: Callable[..., Any]) -> dict[str, Any]:
    """The hints of a class's or function's parameters; Any where one cannot be read here."""
    owner: Any = target
    if inspect.isclass(target):
        owner = next(c for c in target.__mro__ if "__init__" in vars(c))
    names = vars(sys.modules[owner.__module__])
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(target).parameters.items():
        holder = types.SimpleNamespace(__annotations__={name: parameter.annotation})
        try:
            hint = get_type_hints(holder, names, include_extras=True)[name]
        except (NameError, TypeError):  # imported for type checkers alone
            hint = Any
        found[name] = Any if hint is parameter.empty else hint
    return found


def in_words(hint: Any) -> str:
    """E.g. 'a whole number of at least 1, or null'."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        base, *limits = arguments
        if any(isinstance(limit, MinLen | Len) for limit in limits):
            return "a text that is not empty" if base is str else f"{in_words(base)}, not empty"
        ends = {type(limit): dataclasses.astuple(limit)[0] for limit in limits}
        if {Ge, Le} <= ends.keys():
            return f"{in_words(base)} from {ends[Ge]} to {ends[Le]}"
        bounds = " and ".join(_ORDER[kind].format(end) for kind, end in ends.items())
        return f"{in_words(base)} {bounds}".strip()
    if origin in (Union, types.UnionType):
        null = ", or null" if type(None) in arguments else ""
        return " or ".join(in_words(a) for a in arguments if a is not type(None)) + null
    if origin is Literal:
        return " or ".join(_shown(a) for a in arguments)
    if origin is tuple and Ellipsis not in arguments:
        return f"a list of {len(arguments)}: {', '.join(in_words(a) for a in arguments)}"
    if origin is not None and issubclass(origin, Sequence):
        return f"a list, each {in_words(arguments[0])}"
    return _NAMES.get(hint, "a mapping")


@lru_cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))


@lru_cache
def _declared(section: type) -> Mapping[str, Any]:
    return get_type_hints(section, include_extras=True)


def _plain(hint: Any) -> bool:
    """Whether it describes plain data, and no object."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _plain(arguments[0])
    if origin is Literal:
        return True
    if origin in (Union, types.UnionType) or (origin and issubclass(origin, Sequence | Mapping)):
        return all(_plain(a) for a in arguments if a is not Ellipsis)
    return hint in _NAMES


def _is_node(value: Any, hint: Any) -> bool:
    if value is None:
        return type(None) in get_args(hint)
    return isinstance(value, Mapping) if _is_section(hint) else is_piece(value)


def _is_section(hint: Any) -> bool:
    return hint is Section or Section in get_args(hint)


def _node_words(hint: Any) -> str:
    null = " or null" if type(None) in get_args(hint) else ""
    if _is_section(hint):
        return f"a mapping, as conf/ has it{null}"
    return f"a mapping with {TARGET}, as conf/ has it{null}"


def _as_plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's; other objects as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _unread(before: str, key: str, known: Collection[str]) -> BadInput:
    near = difflib.get_close_matches(key, sorted(known), n=1)
    hint = f"did you mean {before}{near[0]}" if near else "remove it"
    return BadInput(f"Nothing reads the setting {before}{key}: {hint}.")


def _shown(value: Any) -> str:
    """A value as a command line has it."""
    if isinstance(value, str):
        return value if value else "''"
    return json.dumps(value, default=_as_plain, ensure_ascii=False)
