"""Make a table or a figure of the papers from the runs below results/.

python experiments/report.py table=4 scale=laptop
python experiments/report.py figure=3 scale=laptop
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from waterline.launch.commands import job, run_command
from waterline.launch.configuration import plain
from waterline.launch.settings import Report
from waterline.reporting import report
from waterline.runs.settings import check_settings

CONF = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(config_path="../conf", config_name="report", version_base="1.3")
def main(config: DictConfig) -> None:
    with job():
        settings = plain(config)
        check_settings(settings, {"": Report})
        report(OmegaConf.create(settings), Console())


if __name__ == "__main__":
    run_command(main, CONF, "report")
