"""What the entry points share: errors as one line, a quiet console, the body of a run."""

from __future__ import annotations

import difflib
import logging
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import hydra
import omegaconf
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from waterline.launch.arguments import options, readable
from waterline.launch.configuration import default_config, plain
from waterline.launch.finish import finish
from waterline.launch.jobs import names
from waterline.runs import BadInput, RunFailed, sentence_errors, unknown_name
from waterline.runs.identity import leaves
from waterline.runs.terminal import file_fault

log = logging.getLogger("waterline")
# The jobs of a sweep that this process carries out itself, and why each failed.
_sweep: list[tuple[Sequence[str], BadInput | RunFailed | None]] | None = None
_NOT_THERE = re.compile(r"Could not delete .*'(.+)'")
_UNKNOWN = re.compile(r"Could not override '([^']+)'")
_SHOWS_A_CONFIGURATION = ("-h", "--help", "-c", "--cfg", "-i", "--info")


def run_command(
    main: Callable[[], None],
    conf: Path,
    name: str,
    example: Sequence[str] = (),
    always: bool = False,
) -> None:
    """Calls a Hydra entry point; an error of the user is one line on stderr and exit status 2.

    Args:
        main: decorated by ``hydra.main``.
        conf: the folder of its configurations; ``name``: that of the primary one.
        example: a choice for each group that has no default and the command line must choose.
        always: whether the example is the choice where the command line has none.
    """
    global _sweep
    _sweep = []
    _quieten()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises what it would print over several lines
    logging.raiseExceptions = False  # a log that cannot be written costs no run, and no traceback
    missing = [e for e in example if not any(a.startswith(_group(e)) for a in sys.argv)]
    if always or any(a.startswith(_SHOWS_A_CONFIGURATION) for a in sys.argv[1:]):
        sys.argv[1:1] = missing  # first: the last option may take a value
    with sentence_errors():
        try:
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # it would end without a word
                signal.signal(signal.SIGTERM, signal.default_int_handler)
            sys.argv[1:] = readable(sys.argv[1:], conf)
            main()
        except KeyboardInterrupt:
            print("interrupted: the same command continues", file=sys.stderr, flush=True)
            raise SystemExit(130) from None
        except Exception as error:
            if not _is_hydras(error):
                raise
            groups = [_group(e).rstrip("=") for e in missing]
            raise BadInput(_sentence(error, sys.argv[1:], conf, name, groups)) from error
        named = zip(names([row for row, _ in _sweep]), _sweep, strict=True)
        if failed := [(name, error) for name, (_, error) in named if error is not None]:
            (_, first), jobs = failed[0], ", ".join(name for name, _ in failed)
            raise type(first)(f"{len(failed)} of {len(_sweep)} jobs failed ({jobs}): {first}")


@contextmanager
def job() -> Iterator[None]:
    """The body of an entry point: in a sweep an error is logged at once and the others go on."""
    try:
        try:
            yield
        except MissingMandatoryValue as error:
            key = error.full_key
            raise BadInput(f"{key} has no value: give one with {key}=….") from error
        except (HydraException, OmegaConfBaseException) as error:
            raise BadInput(_otherwise(error)) from error
        except OSError as error:
            if (fault := file_fault(error)) is None:
                raise
            sentence, status = fault
            raise (BadInput if status == 2 else RunFailed)(sentence) from error
    except (BadInput, RunFailed) as error:
        if HydraConfig.get().mode is not RunMode.MULTIRUN:
            with sentence_errors():
                raise
        log.error("%s", error)
        if _sweep is None:  # a process of its own, whose end tells the cluster
            raise
        _sweep.append((HydraConfig.get().overrides.task, error))
    else:
        if _sweep is not None and HydraConfig.get().mode is RunMode.MULTIRUN:
            _sweep.append((HydraConfig.get().overrides.task, None))


def train_job(config: DictConfig) -> None:
    """A run: the training, then what ``final`` asks for; what is done is passed over."""
    import torch.distributed as dist

    from waterline.rollouts import is_first_process
    from waterline.training.run import train, train_base

    with job():
        settings = plain(config)
        if settings.get("stage") == "base":
            folder = train_base(settings)
        else:
            choices = HydraConfig.get().runtime.choices
            folder = train(settings, default_config(settings.get("seed", 0), choices))
        first = is_first_process(settings["trainer"])
        if first or dist.is_initialized():
            finish(folder, settings)
        if dist.is_initialized():
            dist.destroy_process_group()
        if first:
            print(f"{folder.root}: {folder.state()}")


def _group(choice: str) -> str:
    return choice.partition("=")[0] + "="


def _is_hydras(error: Exception) -> bool:
    """Whether Hydra or OmegaConf refuses the command; some of what they raise has no type."""
    if isinstance(error, HydraException | OmegaConfBaseException):
        return True
    *_, last = traceback.extract_tb(error.__traceback__)
    packages = [Path(str(package.__file__)).parent for package in (hydra, omegaconf)]
    return any(Path(last.filename).is_relative_to(package) for package in packages)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _otherwise(error: Exception) -> str:
    if not isinstance(error, HydraException | OmegaConfBaseException):  # Hydra's own fault
        return (
            f"Hydra cannot read the command ({_first_line(error)}): a group, or a setting that has "
            "others below it, takes a name or a mapping."
        )
    if unknown := _UNKNOWN.match(_first_line(error)):
        return f"There is no setting {unknown[1]!r}: see the folder conf for those there are."
    if absent := _NOT_THERE.match(_first_line(error)):
        return (
            f"~{absent[1]} takes away what is not there, or is null already: remove it from the "
            "command."
        )
    return f"{_first_line(error)}: fix the configuration or the command."


def _sentence(
    error: Exception, arguments: Sequence[str], conf: Path, name: str, missing: Sequence[str]
) -> str:
    """What Hydra reports over several lines, as one: what, where, and what to do."""
    first = _first_line(error)
    if isinstance(error, OverrideParseException):
        return f"The argument {error.override!r} cannot be read ({first}): quote it, or fix it."
    if first.startswith("You must specify"):
        hints = [f"{group}= ({', '.join(options(conf, group))})" for group in missing]
        return f"The command needs {' and '.join(hints)}: add it."
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, value = error.missing_cfg_file.partition("/")
        if not value:
            known = [file.stem for file in conf.glob("*.yaml")]
            return str(unknown_name("configuration", group, known))
        if group == "hydra":
            group, _, value = error.missing_cfg_file.rpartition("/")
            return str(unknown_name(group, value, error.options or ()))
        return str(unknown_name(group, value, options(conf, group)))
    unknown = _UNKNOWN.match(first)
    if not unknown:
        return _otherwise(error)
    key = unknown[1]
    others = [a for a in arguments if "=" in a and not a.startswith(("-", key, "hydra"))]
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(conf), version_base="1.3"):
        try:
            config = hydra.compose(
                name, overrides=[re.sub(r"=([^\[]*?),.*", r"=\1", a) for a in others]
            )
        except HydraException:
            return _otherwise(error)
    known = list(leaves(OmegaConf.to_container(config, resolve=False)))  # type: ignore[arg-type]
    end = key.rpartition(".")[2]
    near = [k for k in known if k.rpartition(".")[2] == end]
    near = near or difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}" if near else "see the folder conf for those there are"
    return f"There is no setting {key!r}: {hint} (a new one is added with +{key}=…)."


def _quieten() -> None:
    """What Lightning and matplotlib say about their own ways is not for the user."""
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    for message in (
        ".*`srun` command.*",
        ".*treespec.*deprecated.*",
        ".*across ranks is zero.*",  # all steps are done, but the run ended before it could say so
        ".*in eval mode at the start.*",  # BatchNorm that is frozen, as asked
    ):
        warnings.filterwarnings("ignore", message=message)
