"""Paths in settings: relative to the user's folder in a command, to the checkout in a record."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from waterline.runs.checks import BadInput
from waterline.runs.targets import TARGET, is_piece, locate, path_keys

_ROOT = Path(__file__).resolve().parents[3]
# Where conf/ and results/ lie; the user's folder where the package is installed without them.
CHECKOUT = _ROOT if (_ROOT / "conf" / "train.yaml").is_file() else Path.cwd()

# Settings of the commands that are paths, and whether they may be null. Those of pieces say so by
# the annotation of the parameter that takes them.
OWN = {
    "run": False, "root": False, "results": False, "paper": False, "paths.results": False,
    "base.path": True,
}  # fmt: skip


def map_paths(
    config: Mapping[str, Any], change: Callable[[str, Any], Any], above: str = ""
) -> dict[str, Any]:
    """A copy of ``config`` in which each path is ``change(its dotted key, the path)``.

    Raises:
        BadInput: A ``_target_`` does not exist.
    """
    keys = path_keys(locate(str(config[TARGET]))) if is_piece(config) else frozenset[str]()
    changed: dict[str, Any] = {}
    for key, value in config.items():
        below = f"{above}{key}"
        if below in OWN or (key in keys and value is not None):
            value = change(below, value)
        elif isinstance(value, Mapping):
            value = map_paths(value, change, f"{below}.")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            value = [map_paths(v, change, f"{below}.") if is_piece(v) else v for v in value]
        changed[key] = value
    return changed


def from_user(key: str, path: Any) -> str | None:
    """A path of a command as this process opens it: ``~`` is the home, else it stays as it is.

    Raises:
        BadInput: It is empty, no path, of a user that does not exist, or a file that should be a
            folder.
    """
    if path is None and OWN.get(key, True):
        return None
    if isinstance(path, bool) or not isinstance(path, str | int):
        raise BadInput(f"{key}={path}: must be a path; write one in quotes, as in {key}=\"'…'\".")
    found = os.path.expanduser(str(path))
    if not found.strip():
        raise BadInput(f"{key} is empty: name a file or a folder, or leave {key}= out.")
    if found.startswith("~"):
        raise BadInput(f"{key}={path}: there is no such home; write ./~… for a name with a ~.")
    if key.endswith("results"):
        there = next(folder for folder in Path(found, "x").absolute().parents if folder.exists())
        if not there.is_dir():
            raise BadInput(f"{key}={path}: {there} is a file; name a folder, or a new one.")
    return found


def to_record(path: str) -> str:
    """A path as a record holds it: relative to the checkout if it lies there, else absolute.

    The same file has the same text, whatever folder the command was given in.
    """
    full = Path(os.path.realpath(path) if ".." in Path(path).parts else os.path.abspath(path))
    for spelling in (full, full.resolve()):
        if spelling.is_relative_to(CHECKOUT):
            return spelling.relative_to(CHECKOUT).as_posix()
    return str(full)


def from_record(path: str) -> str:
    """A recorded path as this process opens it: short where the user is inside the checkout."""
    full, here = CHECKOUT / os.path.expanduser(path), Path.cwd()
    inside = full.is_relative_to(CHECKOUT) and here.is_relative_to(CHECKOUT)
    return os.path.relpath(full, here) if inside else str(full)


def recorded(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as ``config.yaml`` holds it."""
    return map_paths(config, lambda _, path: to_record(path) if isinstance(path, str) else path)


def opened(config: Mapping[str, Any]) -> dict[str, Any]:
    """What ``config.yaml`` holds, with paths that can be opened from the user's folder."""
    return map_paths(config, lambda _, path: from_record(path) if isinstance(path, str) else path)
