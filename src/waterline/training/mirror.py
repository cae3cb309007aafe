"""Where metrics go besides the run folder, which is the record."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from waterline.runs.settings import Text, checked


class NoMirror:
    """The run folder alone."""

    def start(self, folder: Path, run_id: str, config: Mapping[str, Any]) -> None:
        """Nothing to open."""

    def log(self, row: Mapping[str, Any]) -> None:
        """Nothing to send."""

    def close(self) -> None:
        """Nothing to close."""


class WandbMirror:
    """Mirrors rows to Weights & Biases under the same names.

    The run id is a hash of what the run is, so that a restarted run continues its page. ``mode``
    is 'offline' (files in the run folder, for ``wandb sync``) or 'online'.
    """

    @checked
    def __init__(
        self,
        project: Text = "waterline",
        entity: Text | None = None,
        mode: Literal["offline", "online"] = "offline",
    ) -> None:
        self.project, self.entity, self.mode = project, entity, mode
        self._run: Any = None

    def start(self, folder: Path, run_id: str, config: Mapping[str, Any]) -> None:
        import wandb

        self._run = wandb.init(
            project=self.project, entity=self.entity, mode=self.mode, dir=str(folder),
            id=run_id, resume="allow", config=dict(config), group=str(config["experiment"]),
            name=f"{config['method']}-{run_id}",
        )  # fmt: skip
        self._run.define_metric("*", step_metric="step")

    def log(self, row: Mapping[str, Any]) -> None:
        self._run.log(dict(row))

    def close(self) -> None:
        if self._run is not None:
            self._run.finish()
            self._run = None
