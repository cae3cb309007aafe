"""The folder name of a run's settings: readable where it can be, never ambiguous."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from waterline.runs.identity import leaves, read_settings, settings_hash
from waterline.runs.targets import TARGET

LONGEST = 80

_ALWAYS = ("allocation.n0", "allocation.n_max")
_NUMBER_LIKE = re.compile(r"[+-]?(\d|\.\d|inf|nan)", re.IGNORECASE)
_WORDS_OF_YAML = ("", "true", "false", "null", "none")


def settings_name(config: Mapping[str, Any], default: Mapping[str, Any]) -> str:
    """Name the settings of ``config`` by what sets them apart from the method's defaults.

    ``n0-16_nmax-64`` (the second part only where it is read), then ``_<key>-<value>`` for every
    other setting read that deviates from ``default``, in the order of their paths. The key is the
    end of the path, as long as it takes to be unique. Where a value has no short spelling of its
    own, a piece was exchanged, or the name would exceed 80 characters, the deviations are
    written as 8 digits of their hash instead, which no setting that follows the seed enters.

    Args:
        config: The resolved configuration.
        default: The same experiment and method without overrides.

    Returns:
        A name of letters, digits, '.', '-' and '_'. With one ``default``, different settings have
        different names, up to collisions of the hash.
    """
    here, there = leaves(read_settings(config)), leaves(read_settings(default))
    keys = _short_keys({*here, *there})
    always = [path for path in _ALWAYS if path in here]
    deviating = sorted(
        path
        for path in {*here, *there}.difference(_ALWAYS)
        if path not in here or path not in there or here[path] != there[path]
    )
    name = _join([*always, *deviating], here, keys)
    if name is not None and len(name) <= LONGEST:
        return name or "default"
    named = {path: [path in here, here.get(path)] for path in (*always, *deviating)}
    short = settings_hash(named)[:8]
    base = _join(always, here, keys)
    return f"{base}_{short}" if base and len(base) + 1 + len(short) <= LONGEST else short


def _join(paths: Collection[str], values: Mapping[str, Any], keys: Mapping[str, str]) -> str | None:
    """``<key>-<value>`` of each path; None where one of them has no spelling of its own."""
    parts = []
    for path in paths:
        value = _spelling(values[path]) if path in values else None
        if value is None or path not in keys or path.endswith(TARGET):
            return None
        parts.append(f"{keys[path]}-{value}")
    return "_".join(parts)


def _short_keys(paths: Collection[str]) -> dict[str, str]:
    """For each dotted path its shortest end that no other path shares, if there is one.

    Underscores, which separate the settings of a name, are left out.
    """

    def ends(path: str) -> list[str]:
        words = [re.sub(r"[^A-Za-z0-9]", "", word) for word in path.split(".")]
        return [".".join(words[start:]) for start in reversed(range(len(words)))]

    counts: dict[str, int] = {}
    for path in paths:
        for end in ends(path):
            counts[end] = counts.get(end, 0) + 1
    return {path: end for path in paths for end in reversed(ends(path)) if counts[end] == 1}


def _spelling(value: Any) -> str | None:
    """The value in letters, digits, '.' and '-'; None where two values would share a spelling."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value).replace("+", "")
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9._]+", value):
        return None
    if _NUMBER_LIKE.match(value) or value.lower() in _WORDS_OF_YAML:
        return None
    return value.replace("_", "-")
