"""Reproduce a table: a run for each of its rows and seeds, then its tables and figures.

Run through `make reproduce-table4`; see conf/reproduce.yaml. What is finished is not run again.
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from waterline.launch.commands import job, run_command
from waterline.launch.configuration import plain, setting
from waterline.launch.table import run_table
from waterline.reporting import report
from waterline.runs import BadInput

CONF = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(version_base="1.3", config_path="../conf", config_name="reproduce")
def main(config: DictConfig) -> None:
    with job():
        asked = plain(config)
        failed = run_table(asked)
        if asked["dry_run"]:
            return
        for name in asked["tables"][asked["table"]]["reports"]:
            more = [name] if isinstance(name, str) else name
            where = [f"scale={asked['scale']}", *more, setting("root", asked["results"])]
            wanted = plain(hydra.compose("report", overrides=where))
            try:
                report(OmegaConf.create(wanted), Console())
            except BadInput as error:  # no run of it yet
                print(error)
        if failed:
            raise failed


if __name__ == "__main__":
    run_command(main, CONF, "reproduce")
