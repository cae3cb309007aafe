"""Settings that nothing reads are mistakes: they are refused with the nearest name."""

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from waterline.runs.checks import BadInput
from waterline.runs.targets import TARGET, accepted_keys, is_piece, locate


def refuse_unread(config: Mapping[str, Any], read: Mapping[str, Collection[str]]) -> None:
    """Raise BadInput for the first setting that neither its piece nor anything else reads.

    Args:
        config: a resolved configuration.
        read: by dotted path of a node ('' for the whole), the keys that are read there besides
            those that its ``_target_`` accepts. A node without a ``_target_`` is checked only when
            it stands here.
    """
    _refuse(config, "", read)


def _refuse(node: Mapping[str, Any], path: str, read: Mapping[str, Collection[str]]) -> None:
    known: set[str] | None = set(read[path]) if path in read else None
    if is_piece(node):
        accepted = accepted_keys(locate(str(node[TARGET])))
        known = None if accepted is None else {*accepted, TARGET, *(known or ())}
    for key, value in node.items():
        name = f"{path}.{key}" if path else str(key)
        if known is not None and key not in known:
            near = difflib.get_close_matches(str(key), sorted(known - {TARGET}), n=1)
            hint = f"did you mean {f'{path}.' if path else ''}{near[0]}" if near else "remove it"
            raise BadInput(f"Nothing reads the setting {name}: {hint}.")
        if isinstance(value, Mapping):
            _refuse(value, name, read)
