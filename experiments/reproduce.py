"""Reproduce a table: a run for each of its rows and seeds, then its tables and figures.

Run through `make reproduce-table4`; see conf/reproduce.yaml. What is finished is not run again.
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig
from rich.console import Console

from waterline.launch.commands import job, run_command
from waterline.launch.table import run_table
from waterline.reporting import report
from waterline.runs import BadInput

CONF = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(version_base="1.3", config_path="../conf", config_name="reproduce")
def main(config: DictConfig) -> None:
    with job():
        failed = run_table(config)
        if config.dry_run:
            return
        for name in config.tables[config.table].reports:
            where = [f"scale={config.scale}", name]
            wanted = hydra.compose("report", overrides=where)
            wanted.root = config.results
            try:
                report(wanted, Console())
            except BadInput as error:  # no run of it yet
                print(error)
        if failed:
            raise failed


if __name__ == "__main__":
    run_command(main, CONF, "reproduce")
