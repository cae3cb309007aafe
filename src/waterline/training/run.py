"""A whole run: found or made in its folder, continued where it stands, finished once."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from waterline.evaluation import Evaluation
from waterline.rollouts import is_first_process
from waterline.rollouts.ranks import surrounding_processes
from waterline.runs import (
    BadInput,
    FolderBusy,
    RunFailed,
    RunFolder,
    State,
    as_bad_input,
    build,
    identity,
)
from waterline.runs.naming import base_folder, run_folder, supervised_config
from waterline.runs.paths import recorded
from waterline.runs.seeds import stream_key
from waterline.training.assemble import (
    assemble,
    build_policy,
    build_supervised,
    build_task,
    check_config,
    is_pretrained,
    seed_generators,
    set_threads,
)
from waterline.training.checks import check_device
from waterline.training.fit import fit
from waterline.training.inputs import check_done, inputs_of, refuse_overlap
from waterline.training.keeper import RunKeeper
from waterline.training.mirror import NoMirror
from waterline.training.non_finite import NonFinite, save_batch
from waterline.training.stage import Stage
from waterline.training.until import Until

log = logging.getLogger("waterline")
Config = Mapping[str, Any]
_BASE_POLL_SECONDS = 2.0


def train_base(config: Config, task: Any = None) -> RunFolder:
    """Supervised training into ``<results>/<experiment>/base/seed-<n>``.

    Of a pretrained policy there is nothing to train: the folder then has no checkpoint, and stands
    for the policy as it is loaded. ``task`` is that of the configuration, if the caller has already
    built it.
    """
    check_config(config)
    read = supervised_config(config)
    folder = base_folder(config)
    if folder.state() is State.done:
        check_done(folder, read)
        return folder

    check_device(config["trainer"])
    task = build_task(config) if task is None else task
    if is_pretrained(config):
        build_policy(config)  # what is wrong with it is found before the folder is made
        with folder:
            text = yaml.safe_dump(recorded(read), sort_keys=False)
            folder.record_start(text, identity(read), inputs_of(read, task))
            folder.set_state(State.done)
        return folder
    stage = build_supervised(config, task)
    keep = config["supervised"], *_until(stage.until), folder.root / "until"
    return _run(config, read, folder, stage, keep, inputs_of(read, task))


def train(config: Config, default: Config) -> RunFolder:
    """A method's run into the folder of the configuration; trains the base if it needs one.

    ``default`` is the configuration of the same experiment and method without overrides: the
    folder's name tells the difference.
    """
    check_config(config)
    folder = run_folder(config, default)
    if folder.state() is State.done:
        check_done(folder, config)
        return folder
    check_device(config["trainer"])
    task = build_task(config)
    inputs = inputs_of(config, task)
    folder.check_inputs(inputs)
    if hasattr(task, "require_disjoint"):
        with as_bad_input():
            task.require_disjoint()
    stage, evaluation = assemble(config, task)
    # Everything was built and checked before hours go into the base.
    if (base := _base_weights(config, task)) is not None:
        stage.start_from(base)
    keep = config["training"], evaluation, config["evaluation"], folder.eval
    return _run(config, config, folder, stage, keep, inputs)


def _until(rule: Until | None) -> tuple[Evaluation | None, Config]:
    """What a supervised start evaluates along its way, and when."""
    if rule is None:
        return None, {"split": "dev", "every": 0}
    return rule.evaluation, {"split": rule.split, "every": rule.every, "after": rule.after}


def _base_weights(config: Config, task: Any) -> Path | None:
    """The checkpoint that the run starts from; None where it starts from random weights."""
    base = config["base"]
    if base["path"] is not None:
        refuse_overlap(config, task)
        return Path(base["path"])
    if config["supervised"] is None:
        return None
    folder = base_folder(config)
    if folder.state() is State.done:
        check_done(folder, supervised_config(config))
    else:
        if not base["train_if_missing"]:
            raise BadInput(
                f"The base checkpoint {folder.checkpoints / 'final.pt'} is missing: run the same "
                "command with stage=base first, or name a checkpoint with base.path=."
            )
        log.info("no base policy yet: supervised training first")
        _train_base_once(config, task)
    return folder.checkpoints / "final.pt"


def _train_base_once(config: Config, task: Any) -> None:
    """Trains the base, or waits for the process of the same sweep that is doing so."""
    for attempt in count():
        try:
            train_base(config, task)
            return
        except FolderBusy:
            if attempt == 0:
                log.info("another process trains the base policy: waiting for it")
            time.sleep(_BASE_POLL_SECONDS)


def _run(
    config: Config,
    read: Config,
    folder: RunFolder,
    stage: Stage,
    keep: tuple[Config, Evaluation | None, Config, Path],
    inputs: Mapping[str, str],
) -> RunFolder:
    set_threads(config["trainer"]["threads"])
    seed_generators(config["seed"])
    first = is_first_process(config["trainer"])
    with _recorded(folder, read, stage, inputs) if first else _silent():
        mirror = build(config["logger"]) if first else NoMirror()
        run_id = identity(read)
        page = f"{stream_key(config['seed'], str(folder.root.name) + run_id, 0):016x}"
        mirror.start(folder.root, page, recorded(config))
        for sentence in getattr(getattr(stage, "task", None), "notices", list)():
            log.info("%s", sentence)
        keeper = RunKeeper(folder, mirror, *keep, first)
        try:
            fit(config["trainer"], stage, keeper)
        finally:
            keeper.close()
            stage.close()
    stage.ranks.wait()  # the other ranks read what rank 0 has written
    return folder


@contextmanager
def _recorded(
    folder: RunFolder, read: Config, stage: Stage, inputs: Mapping[str, str]
) -> Iterator[None]:
    """The lock, the log and the status of a run, for as long as it is carried out."""
    try:
        folder.__enter__()
    except FolderBusy as busy:
        if (world := surrounding_processes()) == 1:
            raise
        raise FolderBusy(
            f"{str(busy).removesuffix('.')}; for one run on all {world} processes of this job set "
            "trainer.devices and trainer.num_nodes."
        ) from None
    with folder:
        text = yaml.safe_dump(recorded(read), sort_keys=False)
        folder.record_start(text, identity(read), inputs)
        handler = folder.log_handler()
        log.addHandler(handler)
        try:
            yield
            whole = stage.done == stage.steps
            folder.set_state(State.done if whole else State.preempted, step=stage.done)
        except NonFinite as error:
            step = stage.done + 1
            file = folder.root / f"nan-batch-step-{step}.pt"
            path = save_batch(file, error, stage.done, stage.policy.state_dict())
            message = (
                f"The {error} at step {step}: the batch and the weights are saved in {path}; lower "
                "the optimizer's lr or its grad_clip, and start again."
            )
            folder.set_state(State.failed, step=stage.done, message=message)
            raise BadInput(message) from error
        except (KeyboardInterrupt, SystemExit) as signal:
            folder.set_state(State.preempted, step=stage.done)
            # Lightning's SIGTERM ends with status 0, which would read as success.
            raise KeyboardInterrupt from signal
        except BaseException as error:
            message = str(error) or type(error).__name__
            folder.set_state(State.failed, step=stage.done, message=message)
            raise
        finally:
            log.removeHandler(handler)
            handler.close()


@contextmanager
def _silent() -> Iterator[None]:
    """Every rank but the first: an error that stops all of them is reported by the first."""
    log.setLevel(logging.ERROR)
    try:
        yield
    except (BadInput, RunFailed, NonFinite):
        raise SystemExit(0) from None
