"""The main job in minutes: a supervised base, then MaxRL and SERA with the same rollouts.

Run through `make demo`. A stopped demo goes on where it was; a finished one shows its results
again (remove results/maze-demo to start afresh).
"""

import time
from pathlib import Path

import hydra
from rich.console import Console

from waterline.launch.jobs import jobs_of
from waterline.launch.local import run_local
from waterline.launch.watch import Watch
from waterline.reporting import compare, load_runs, pass_at_k_table, print_table
from waterline.reporting.figures import figure3, save
from waterline.runs import BadInput, sentence_errors

KS = [1, 8, 32, 64]
COMMON = ("experiment=maze/demo", "seed=0")
HERE = Path(__file__).resolve().parent
LOGS = Path("results/maze-demo/.jobs")
console = Console()


def run(title: str, rows: list[tuple[str, ...]], threads: int) -> None:
    with hydra.initialize_config_dir(str(HERE.parent / "conf"), version_base="1.3"):
        jobs = jobs_of(rows)
    with Watch(console, title, {job.name: job.folder for job in jobs}) as watch:
        failed = run_local(
            jobs, watch, script=HERE / "train.py", logs=LOGS, workers=2, threads=threads
        )
    if failed:
        raise BadInput(f"{failed[0].job.name} failed ({failed[0].reason}): see {failed[0].log}.")


def main() -> None:
    began = time.monotonic()
    run("1. Supervised start on 25,600 mazes", [(*COMMON, "method=sera", "stage=base")], threads=2)
    methods = [(*COMMON, f"method={method}") for method in ("maxrl", "sera")]
    run("2. MaxRL and SERA, 512 rollouts a step each, side by side", methods, threads=1)
    runs = [r for r in load_runs(Path("results"), "maze-demo") if r.status == "done"]
    by_method = {name: [r for r in runs if r.method == name] for name in ("maxrl", "sera")}
    table = pass_at_k_table(runs, KS, "dev", "unbiased")
    print_table(console, table, "3. Pass@K on mazes that were not trained on")
    for k in KS:
        console.print(
            compare(by_method["sera"], by_method["maxrl"], k, split="dev"), highlight=False
        )
    paths = save(figure3(runs, split="dev", curve_split="dev"), Path("results/maze-demo/demo"))
    console.print(f"Figure: {', '.join(map(str, paths))}")
    console.print(
        f"{time.monotonic() - began:.0f} s in all; `make reproduce-table4` is the real comparison."
    )


if __name__ == "__main__":
    with sentence_errors():
        main()
