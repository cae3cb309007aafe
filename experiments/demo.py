"""The main job in minutes: a supervised base, then MaxRL and SERA with the same rollouts.

Run through `make demo`. A stopped demo goes on where it was; a finished one shows its results
again (remove results/maze-demo to start afresh).
"""

import time
from pathlib import Path

from rich.console import Console

from waterline.launch.job_watch import JobWatch
from waterline.launch.jobs import Command, run_local
from waterline.reporting import compare, load_runs, pass_at_k_table, print_table
from waterline.reporting.figures import figure3, save
from waterline.runs import sentence_errors

KS = [1, 8, 32, 64]
COMMON = ("experiments/train.py", "experiment=maze/demo")
console = Console()


def run(title: str, commands: list[Command], threads: int) -> None:
    with JobWatch(console, title, len(commands)) as watch:
        run_local(commands, workers=2, threads=threads, ended=watch.ended, told=watch.told)


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
