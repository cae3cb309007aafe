"""The folder of one run: what it is called, what lies in it, and who may write there."""

import json
import logging
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from waterline.runs.atomic import atomic_write, remove_partial_files
from waterline.runs.checks import BadInput
from waterline.runs.lock import FolderLock
from waterline.runs.metrics_log import MetricsLog
from waterline.runs.provenance import provenance

_NAME = re.compile(r"[A-Za-z0-9._-]+")


class State(StrEnum):
    """Where a run stands, as ``status.json`` says."""

    running = "running"
    done = "done"
    failed = "failed"
    preempted = "preempted"


class RunFolder:
    """The files of one run under ``root``; reading needs nothing, writing needs the lock.

    Used as a context manager, it takes the lock and clears away what a killed writer left half
    done::

        with RunFolder.of(results, "maze-laptop", "sera", "n0-16_nmax-64", seed=0) as folder:
            folder.record_start(config_text, identity)

    A run that was killed without warning still says ``running``: starting it again takes the lock,
    which the kernel has released, and continues.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self.config = self.root / "config.yaml"
        self.provenance = self.root / "provenance.json"
        self.status = self.root / "status.json"
        self.metrics = self.root / "metrics.jsonl"
        self.log = self.root / "log.txt"
        self.allocation = self.root / "allocation"
        self.eval = self.root / "eval"
        self.checkpoints = self.root / "checkpoints"
        self._lock = FolderLock(self.root)

    @classmethod
    def of(
        cls, results: str | os.PathLike[str], experiment: str, method: str, settings: str, seed: int
    ) -> Self:
        """``<results>/<experiment>/<method>/<settings>/seed-<seed>``.

        Raises:
            BadInput: A name is empty or holds anything but letters, digits, '.', '_' and '-'.
        """
        names = {"experiment": experiment, "method": method, "settings": settings}
        for what, name in names.items():
            if not _NAME.fullmatch(name) or name in (".", ".."):
                raise BadInput(
                    f"The {what} name {name!r} cannot name a folder: use letters, digits, '.', '_' "
                    "and '-' only."
                )
        return cls(Path(results) / experiment / method / settings / f"seed-{seed}")

    def __enter__(self) -> Self:
        self._lock.acquire()
        remove_partial_files(self.root)
        return self

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def record_start(
        self, config_text: str, identity: str, inputs: Mapping[str, str] | None = None
    ) -> int:
        """Write the configuration and the provenance, and set the status to running.

        The first start's provenance stays; later ones are listed under ``restarts``.

        Args:
            config_text: The resolved configuration as YAML.
            identity: The hash of the settings that the run reads.
            inputs: Digests of what it reads from files.

        Returns:
            How often the run was started before.

        Raises:
            BadInput: The folder holds a run with another identity, or its files have changed.
        """
        self.check_identity(identity)
        self.check_inputs(inputs or {})
        if self.provenance.exists():
            record = self._provenance()
            record["restarts"].append(provenance())
        else:
            record = {"identity": identity, **provenance(), "restarts": []}
        record["inputs"] = {**(inputs or {}), **record.get("inputs", {})}
        atomic_write(self.config, config_text)
        atomic_write(self.provenance, json.dumps(record, indent=2) + "\n")
        self.set_state(State.running)
        return len(record["restarts"])

    def check_identity(self, identity: str) -> None:
        """Raise BadInput when the folder holds a run of other settings."""
        if not self.provenance.exists():
            return
        held = self._provenance()["identity"]
        if held != identity:
            raise BadInput(
                f"{self.root} holds a run of other settings ({held}, asked for {identity}): see "
                "its config.yaml, and restore its settings, move it away, or write elsewhere with "
                "paths.results=."
            )

    def inputs(self) -> dict[str, str]:
        """The digests of what the run read from files when it was begun."""
        return dict(self._provenance().get("inputs", {})) if self.provenance.exists() else {}

    def check_inputs(self, inputs: Mapping[str, str]) -> None:
        """Raise BadInput when files are not those that the run was begun with."""
        held = self.inputs()
        for name, digest in inputs.items():
            if (before := held.get(name, digest)) != digest:
                raise BadInput(
                    f"What {name} reads has changed since {self.root} was begun ({before} then, "
                    f"{digest} now): restore its files, or write elsewhere with paths.results=."
                )

    def _provenance(self) -> dict[str, Any]:
        try:
            record = json.loads(self.provenance.read_text(encoding="utf-8"))
            return {"identity": record["identity"], "restarts": [*record["restarts"]], **record}
        except (ValueError, LookupError, TypeError) as error:
            raise BadInput(
                f"{self.provenance} cannot be read, so that the run may be one of other settings: "
                f"restore it, or move {self.root} away."
            ) from error

    def set_state(self, state: State | str, **details: Any) -> None:
        """Write ``status.json``: the state, the time, and any JSON details (step, message).

        Raises:
            ValueError: The state is none of :class:`State`.
        """
        time = datetime.now(UTC).isoformat(timespec="seconds")
        status = {"state": str(State(state)), "time": time, **details}
        atomic_write(self.status, json.dumps(status) + "\n")

    def state(self) -> State | None:
        """What ``status.json`` says; None when the run was never started, or it says nothing."""
        try:
            return State(json.loads(self.status.read_text(encoding="utf-8"))["state"])
        except (FileNotFoundError, ValueError, LookupError, TypeError):
            return None

    def open_metrics(self) -> MetricsLog:
        """The run's metrics, open for appending."""
        return MetricsLog(self.metrics)

    def log_handler(self) -> logging.Handler:
        """A handler that appends to ``log.txt``; the caller adds it to a logger and closes it."""
        self.root.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(self.log, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        return handler

    def read_config(self) -> dict[str, Any]:
        """The resolved configuration that the run was made with.

        Raises:
            BadInput: The folder holds no run, or its configuration cannot be read.
        """
        if not self.config.exists():
            where = "" if self.root.is_absolute() else f" (below {Path.cwd()})"
            raise BadInput(
                f"{self.root}{where} holds no run: name a folder with a config.yaml, as in run=…."
            )
        # Imported here, since the folder of a run is also read where no YAML is installed.
        import yaml

        try:
            config = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, yaml.YAMLError):
            config = None
        if not isinstance(config, dict):
            raise BadInput(f"{self.config} is no configuration of a run: restore it.")
        return config
