"""What the entry points share: errors as one line, a quiet console, the body of a run."""

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
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from waterline.launch.configuration import default_config, plain
from waterline.launch.finish import finish
from waterline.runs import BadInput, RunFailed, sentence_errors, unknown_name
from waterline.runs.identity import leaves

log = logging.getLogger("waterline")
_SHOWS_A_CONFIGURATION = ("-h", "--help", "-c", "--cfg")


def run_command(
    main: Callable[[], None], conf: Path, name: str, example: Sequence[str] = ()
) -> None:
    """Calls a Hydra entry point; an error of the user is one line on stderr and exit status 2.

    Args:
        main: decorated by ``hydra.main``.
        conf: the folder of its configurations; ``name``: that of the primary one.
        example: a choice for each group that has no default and the command line must choose.
    """
    _quieten()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises what it would print over several lines
    logging.raiseExceptions = False  # a log that cannot be written costs no run, and no traceback
    missing = [e for e in example if not any(a.startswith(_group(e)) for a in sys.argv)]
    if any(a.startswith(_SHOWS_A_CONFIGURATION) for a in sys.argv[1:]):
        sys.argv += missing
    with sentence_errors():
        try:
            main()
        except (HydraException, OmegaConfBaseException) as error:
            groups = [_group(e).rstrip("=") for e in missing]
            raise BadInput(_sentence(error, sys.argv[1:], conf, name, groups)) from error
        except ValueError as error:
            if not str(error).startswith("Config group override"):  # Hydra's own
                raise
            raise BadInput(
                "A group of settings, such as allocation, was given null: choose one of its files, "
                "as in allocation=waterline."
            ) from error
        except KeyboardInterrupt:
            print("interrupted: the same command continues", file=sys.stderr, flush=True)
            raise SystemExit(130) from None


@contextmanager
def job() -> Iterator[None]:
    """The body of an entry point: in a sweep an error is logged at once and the others go on."""
    try:
        try:
            yield
        except MissingMandatoryValue as error:
            key = error.full_key
            raise BadInput(f"{key} has no value: give one with {key}=….") from error
    except (BadInput, RunFailed, OSError) as error:
        if HydraConfig.get().mode is RunMode.MULTIRUN:
            log.error("%s", error)
            raise
        with sentence_errors():
            raise


def train_job(config: DictConfig) -> None:
    """A run: the training, then what ``final`` asks for; what is done is passed over."""
    import torch.distributed as dist

    from waterline.rollouts import is_first_process
    from waterline.training.run import train, train_base

    with job():
        settings = plain(config)
        if settings["stage"] == "base":
            folder = train_base(settings)
        else:
            choices = HydraConfig.get().runtime.choices
            folder = train(settings, default_config(settings["seed"], choices))
        first = is_first_process(settings["trainer"])
        if dist.is_initialized():
            dist.destroy_process_group()  # the first rank goes on alone
        if first:
            finish(folder, settings)
            print(f"{folder.root}: {folder.state()}")


def _group(choice: str) -> str:
    return choice.partition("=")[0] + "="


def _options(conf: Path, group: str) -> list[str]:
    folder = conf / group
    files = (file.relative_to(folder).with_suffix("") for file in folder.rglob("*.yaml"))
    return sorted(file.as_posix() for file in files)


def _sentence(
    error: Exception, arguments: Sequence[str], conf: Path, name: str, missing: Sequence[str]
) -> str:
    """What Hydra reports over several lines, as one: what, where, and what to do."""
    first = str(error).strip().splitlines()[0].rstrip(".")
    if isinstance(error, OverrideParseException):
        return f"The argument {error.override!r} cannot be read ({first}): quote it, or fix it."
    if ambiguous := re.match(r"Ambiguous value for argument '(.+)'", first):
        key, _, values = ambiguous[1].partition("=")
        return (
            f"{ambiguous[1]} holds several values: add -m for a run of each, or write a list as "
            f"{key}=[{values}]."
        )
    if first.startswith("You must specify"):
        hints = [f"{group}= ({', '.join(_options(conf, group))})" for group in missing]
        return f"The command needs {' and '.join(hints)}: add it."
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, value = error.missing_cfg_file.partition("/")
        if group == "hydra":
            group, _, value = error.missing_cfg_file.rpartition("/")
            return str(unknown_name(group, value, error.options or ()))
        return str(unknown_name(group, value, _options(conf, group)))
    unknown = re.match(r"Could not override '([^']+)'", first)
    if not unknown:
        return f"{first}: fix the configuration or the command."
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
    """Warnings of Lightning about its own ways are not for the user."""
    for message in (
        ".*`srun` command.*",
        ".*treespec.*deprecated.*",
        ".*across ranks is zero.*",  # all steps are done, but the run ended before it could say so
        ".*in eval mode at the start.*",  # BatchNorm that is frozen, as asked
    ):
        warnings.filterwarnings("ignore", message=message)
