"""Copies what tables read of finished runs: `python experiments/publish.py maze-laptop [results]`.

From results/<experiment>/ to results/published/<experiment>/, where it is committed.
"""

import shutil
import sys
from pathlib import Path

from waterline.reporting import load_runs

PUBLISHED = Path(__file__).resolve().parents[1] / "results/published"
FILES = ("config.yaml", "provenance.json", "status.json", "metrics.jsonl", "eval/*.parquet",
         "eval/*.json", "gradients/*")  # fmt: skip


def publish(results: Path, experiment: str) -> int:
    """Copies the finished runs; gives their number."""
    runs = [run for run in load_runs(results, experiment) if run.status == "done"]
    for run in runs:
        to = PUBLISHED / run.path.relative_to(results)
        for file in (file for pattern in FILES for file in run.path.glob(pattern)):
            (to / file.relative_to(run.path)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to / file.relative_to(run.path))
    return len(runs)


if __name__ == "__main__":
    experiment, results = (*sys.argv[1:], "results")[:2]
    print(f"{publish(Path(results), experiment)} runs of {experiment} are in {PUBLISHED}")
