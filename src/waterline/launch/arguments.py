"""The arguments of a command, made readable for Hydra or refused in a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.errors import HydraException

from waterline.launch.configuration import setting
from waterline.runs import BadInput
from waterline.runs.paths import OWN

_FLAGS = ("-m", "--multirun", "-r", "--run", "--resolve")
_KEY = re.compile(r"[+~]*[\w./@:-]+")


def options(conf: Path, group: str) -> list[str]:
    """The choices of a group of configurations, also those in folders below it."""
    folder = conf / group
    files = (file.relative_to(folder).with_suffix("") for file in folder.rglob("*.yaml"))
    return sorted(file.as_posix() for file in files)


def readable(arguments: Sequence[str], conf: Path) -> list[str]:
    """The arguments as Hydra reads them.

    A path that is no word of Hydra's grammar, as ``out/user=me`` or ``~/a (1)``, is put in quotes;
    ``glob(…)`` of a group becomes its choices.

    Raises:
        BadInput: An argument is no setting, has several values without -m, or none with it.
    """
    # Hydra takes settings before or after its flags, but not both.
    flags = [argument for argument in arguments if argument in _FLAGS]
    arguments = [*flags, *(argument for argument in arguments if argument not in _FLAGS)]
    sweeps = any(a == "-m" or a.startswith(("--mult", "hydra.mode=")) for a in arguments)
    parser = OverridesParser.create()
    return [
        _readable(argument, conf, sweeps, parser)
        if "=" in argument and not argument.startswith("-")
        else argument
        for argument in arguments
    ]


def _readable(argument: str, conf: Path, sweeps: bool, parser: OverridesParser) -> str:
    key, _, value = argument.partition("=")
    if not _KEY.fullmatch(key):
        raise BadInput(f"The argument {argument!r} has no name of a setting: write key=value.")
    try:
        override = parser.parse_override(argument)
    except HydraException as error:
        names_a_file = key.lstrip("+") in OWN or key.startswith(("task.", "+task."))
        if names_a_file and not value.startswith(("[", "{", "'", '"')):
            return setting(key, value)
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise BadInput(
            f"The argument {argument!r} cannot be read ({reason}): put the value in quotes of its "
            f"own, as in \"{key}='…'\", or fix it."
        ) from error
    if not override.is_sweep_override():
        return argument
    group = (conf / override.key_or_group).is_dir()
    if not sweeps:
        other = f", or write a list as {key}=[{value}], a text as \"{key}='{value}'\""
        raise BadInput(
            f"{argument} holds several values: add -m for a run of each"
            f"{'' if group or not override.is_choice_sweep() else other}."
        )
    return _sweep(argument, override, options(conf, override.key_or_group) if group else [])


def _sweep(argument: str, override: Override, known: Sequence[str]) -> str:
    """The values of an argument that makes several runs; names below a group are found too."""
    if override.is_interval_sweep():
        raise BadInput(f"{argument} has no end: list the values, with commas or choice(…).")
    key = argument.partition("=")[0]
    pattern: Any = override._value  # Hydra keeps it to itself until there is a configuration
    if isinstance(pattern, Glob):
        if not (found := pattern.filter(list(known))):
            raise BadInput(f"{argument} fits none of {', '.join(known) or 'no choices'}: fix it.")
        return f"{key}={','.join(found)}"
    try:
        if not list(override.sweep_iterator()):
            raise BadInput(f"{argument} holds no value, so there is no run: give it at least one.")
    except HydraException as error:
        raise BadInput(f"{argument} cannot be read ({error}): fix it.") from error
    return argument
