"""Settings that nothing reads are mistakes: they are refused with the nearest name."""

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from waterline.runs.checks import BadInput
from waterline.runs.targets import TARGET, accepted_keys, is_piece, locate


def refuse_unread(
    config: Mapping[str, Any], read: Mapping[str, Collection[str]], path: str = ""
) -> None:
    """Raise BadInput for the first setting that neither its piece nor anything else reads.

    Args:
        config: a resolved configuration, or the node of one.
        read: by dotted path of a node ('' for the whole), the keys that are read there besides
            those that its ``_target_`` accepts. A node without a ``_target_`` is checked only when
            it stands here.
        path: where ``config`` stands in the whole.
    """
    known: set[str] | None = set(read[path]) if path in read else None
    if is_piece(config):
        accepted = accepted_keys(locate(str(config[TARGET])))
        known = None if accepted is None else {*accepted, TARGET, *(known or ())}
    before = f"{path}." if path else ""
    for key, value in config.items():
        if known is not None and key not in known:
            near = difflib.get_close_matches(str(key), sorted(known - {TARGET}), n=1)
            hint = f"did you mean {before}{near[0]}" if near else "remove it"
            raise BadInput(f"Nothing reads the setting {before}{key}: {hint}.")
        if isinstance(value, Mapping):
            refuse_unread(value, read, f"{before}{key}")
