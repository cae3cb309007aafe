"""What makes two runs the same run: the settings that their pieces read, and nothing else."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from waterline.runs.paths import recorded
from waterline.runs.targets import TARGET, accepted_keys, is_piece, locate

# Sections and keys that say where and how a run is carried out, not what is computed. The seed has
# a folder level of its own. Devices are here because results do not depend on the number of ranks.
IGNORED = (
    "seed",
    "paths",
    "logger",
    "launcher",
    "hydra",
    "trainer",
    "evaluation",
    "final",
    "training.checkpoint_every",
    "training.log_every",
    "training.diagnostics_every",
    "supervised.checkpoint_every",
    "supervised.log_every",
    "base.train_if_missing",
    "engine.max_rows",
    "engine.max_prefill_tokens",
    "training.update.max_tokens",
)

# Settings that stand in a piece's node but are read by the training step rather than by the piece,
# unless the piece says by `reads_budget = False` that nothing is sampled.
READ_BY_THE_STEP = ("n0",)


def read_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a resolved configuration that is read.

    Returns:
        Plain dicts, lists and scalars, without what is IGNORED. A node with a ``_target_`` keeps
        the keys that the target accepts; other nodes keep all. Paths are as in a record, so that
        they do not depend on the folder where the command was given.

    Raises:
        BadInput: A ``_target_`` does not exist.
    """
    settings = _read(recorded(config), "")
    assert isinstance(settings, dict)
    return settings


def identity(config: Mapping[str, Any]) -> str:
    """The hash of what a run reads: 12 hexadecimal digits, equal for equal settings.

    Neither the order of keys nor the spelling of numbers (1 or 1.0) matters.
    """
    return settings_hash(read_settings(config))


def settings_hash(settings: Mapping[str, Any]) -> str:
    """12 hexadecimal digits of plain settings, whatever the order of their keys."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def leaves(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The leaves of nested settings by their dotted path; a list is a leaf."""
    return dict(_walk(settings, ""))


def _walk(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _walk(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _read(value: Any, path: str) -> Any:
    if isinstance(value, Mapping):
        target = locate(str(value[TARGET])) if is_piece(value) else None
        accepted = None if target is None else accepted_keys(target)
        by_step = READ_BY_THE_STEP if getattr(target, "reads_budget", True) else ()
        kept = {}
        for key, inner in value.items():
            below = f"{path}.{key}" if path else str(key)
            read = accepted is None or key in accepted or key == TARGET or key in by_step
            if read and below not in IGNORED:
                kept[str(key)] = _read(inner, below)
        return kept
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_read(inner, path) for inner in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() else value
    return str(value)
