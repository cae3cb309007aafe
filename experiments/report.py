"""Make a table or a figure of the papers from the runs below results/.

python experiments/report.py table=4 scale=laptop
python experiments/report.py figure=3 scale=laptop
"""

import hydra
from omegaconf import DictConfig
from rich.console import Console

from waterline.reporting import report
from waterline.runs import sentence_errors


@hydra.main(config_path="../conf", config_name="report", version_base="1.3")
def main(config: DictConfig) -> None:
    with sentence_errors():
        report(config, Console())


if __name__ == "__main__":
    main()
