"""What the entry points share: choices checked by name, errors as one line, a quiet console."""

from __future__ import annotations

import difflib
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, OverrideParseException
from hydra.types import RunMode
from omegaconf import OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from waterline.runs import BadInput, sentence_errors, unknown_name
from waterline.runs.identity import leaves

log = logging.getLogger("waterline")
# Options of Hydra after which nothing is run, or other folders of configurations count too.
_NO_CHECK = ("-h", "--help", "--hydra-help", "--version", "--info", "-i", "-sc", "-cd", "--config")


def run_command(
    main: Callable[[], None], conf: Path, name: str, required: Sequence[str] = ()
) -> None:
    """Calls a Hydra entry point; what a user can mend is one line on stderr and exit status 2.

    Args:
        main: decorated by ``hydra.main``.
        conf: the folder of its configurations; ``name``: that of the primary one.
        required: groups without a default, which the command line must choose.
    """
    _quieten()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises what it would print over several lines
    arguments = sys.argv[1:]
    with sentence_errors():
        if not any(a.startswith(_NO_CHECK) for a in arguments):
            _check_choices(arguments, conf, required)
        try:
            main()
        except (HydraException, OmegaConfBaseException) as error:
            raise BadInput(_sentence(error, arguments, conf, name)) from error
        except KeyboardInterrupt:
            print("interrupted: the same command continues", file=sys.stderr, flush=True)
            raise SystemExit(130) from None


@contextmanager
def job() -> Iterator[None]:
    """The body of an entry point: in a sweep a bad job is told at once and the others go on."""
    try:
        try:
            yield
        except MissingMandatoryValue as error:
            key = error.full_key
            raise BadInput(f"{key} has no value: give one with {key}=….") from error
    except BadInput as error:
        if HydraConfig.get().mode is RunMode.MULTIRUN:
            log.error("%s", error)
            raise
        with sentence_errors():
            raise


def _check_choices(arguments: Sequence[str], conf: Path, required: Sequence[str]) -> None:
    chosen = {}
    for argument in arguments:
        if match := re.fullmatch(r"\+{0,2}([a-z_/]+)(?:@[\w.]+)?=([\w/,.-]+)", argument):
            chosen[match[1]] = match[2].split(",")
    for group, values in chosen.items():
        if not (conf / group).is_dir():
            continue
        for value in values:
            if not (conf / group / f"{value}.yaml").is_file():
                raise unknown_name(group, value, _options(conf, group))
    if missing := [group for group in required if group not in chosen]:
        hints = [f"{group}= ({', '.join(_options(conf, group))})" for group in missing]
        raise BadInput(f"The command lacks {' and '.join(hints)}: add it.")


def _options(conf: Path, group: str) -> list[str]:
    folder = conf / group
    files = (file.relative_to(folder).with_suffix("") for file in folder.rglob("*.yaml"))
    return sorted(file.as_posix() for file in files)


def _sentence(error: Exception, arguments: Sequence[str], conf: Path, name: str) -> str:
    first = str(error).strip().splitlines()[0].rstrip(".")
    if isinstance(error, OverrideParseException):
        return f"The argument {error.override!r} cannot be read ({first}): quote it, or mend it."
    unknown = re.match(r"Could not override '([^']+)'", first)
    if not unknown:
        return f"{first}: mend the configuration or the command."
    key = unknown[1]
    others = [a for a in arguments if "=" in a and not a.startswith(("-", key, "hydra"))]
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(conf), version_base="1.3"):
        try:
            config = hydra.compose(
                name, overrides=[re.sub(r"=([^\[]*?),.*", r"=\1", a) for a in others]
            )
        except HydraException:
            return f"There is no setting {key!r}: see the folder conf for those there are."
    known = list(leaves(OmegaConf.to_container(config, resolve=False)))  # type: ignore[arg-type]
    end = key.rpartition(".")[2]
    near = [k for k in known if k.rpartition(".")[2] == end]
    near = near or difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}" if near else "see the folder conf for those there are"
    return f"There is no setting {key!r}: {hint} (a new one is added with +{key}=…)."


def _quieten() -> None:
    """Lightning tells of devices, tips and the end of each fit; deprecations are not the user's."""
    for library in ("pytorch_lightning", "lightning_fabric", "lightning"):
        logging.getLogger(library).setLevel(logging.WARNING)
    for message in (
        ".*`srun` command.*",
        ".*treespec.*deprecated.*",
        ".*across ranks is zero.*",  # all steps are done, but the run ended before it could say so
        ".*in eval mode at the start.*",  # BatchNorm that is frozen, as asked
    ):
        warnings.filterwarnings("ignore", message=message)
