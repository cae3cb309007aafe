"""GRPO, MaxRL and SERA from one base, with the same number of rollouts.

Run through `make demo`. A stopped demo continues where it was; a finished one shows its results
again (remove results/maze-demo to start afresh). Arguments are settings of all three runs.
"""

import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hydra
import matplotlib as mpl
from hydra.core.hydra_config import HydraConfig
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from omegaconf import DictConfig
from rich.console import Console

from waterline.evaluation import estimate
from waterline.launch.commands import job, run_command
from waterline.launch.configuration import plain
from waterline.launch.jobs import Job, carry_out, jobs_of, require_right
from waterline.launch.local import run_local
from waterline.reporting import Run, load_runs, pass_at_k_table, print_compact
from waterline.reporting.figures.panels import draw_curves, draw_profile
from waterline.reporting.figures.series import by_kind
from waterline.reporting.figures.style import RC, legend, save, style
from waterline.reporting.kinds import method_label
from waterline.reporting.pass_at_k import PassAtKTable
from waterline.reporting.render import interval, print_notes, signed, verdict
from waterline.reporting.rows import Row, collect, difference
from waterline.runs import BadInput

HERE = Path(__file__).resolve().parent
METHODS = ("grpo", "maxrl", "sera")
CHOSEN = ("experiment=maze/demo", "method=grpo")  # the first of the jobs
KS = (1, 8, 32, 64)
CURVES = (1, 32)
SPLIT, ESTIMATOR = "dev", "unbiased"


def jobs(overrides: Sequence[str]) -> list[Job]:
    """A job for each method."""
    own = [o for o in overrides if not o.startswith(("experiment=", "method="))]
    return jobs_of([("experiment=maze/demo", f"method={method}", *own) for method in METHODS])


def finding(a: Row, b: Row, ks: Sequence[int]) -> str:
    """One sentence: who is ahead at each K, by how much, and whether that is more than noise."""
    parts = []
    for k in ks:
        delta = difference(a, b, k, ESTIMATOR)
        bounds = interval(delta.interval, True)
        parts.append(f"{verdict(delta)} at Pass@{k}, {signed(delta.value)} points {bounds}")
    return f"{method_label(a.method)} against {method_label(b.method)}: {'; '.join(parts)}."


def from_base(base: Row, rows: Sequence[Row], k: int) -> str:
    """One sentence: how each method has moved Pass@K of the policy that it started from."""
    start = estimate(base.answers.scores(k, ESTIMATOR)).value
    moves = []
    for row in rows:
        delta = difference(row, base, k, ESTIMATOR)
        doubt = "" if delta.excludes_zero else ", within noise"
        moves.append(f"{method_label(row.method)} {signed(delta.value)}{doubt}")
    return f"Pass@{k} of the base, {start:.1f}%, has changed by: {'; '.join(moves)}."


def findings(table: PassAtKTable) -> list[str]:
    """What the table shows, from its numbers."""
    base, grpo, maxrl, sera = table.rows
    return [
        from_base(base, (grpo, maxrl, sera), 32),
        finding(grpo, maxrl, (32, 1)),
        finding(sera, maxrl, (32, 1)),
    ]


def draw(runs: Sequence[Run], table: PassAtKTable) -> Figure:
    """Pass@1 and Pass@32 over training and the final profile, with the interval of each point."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        panels = figure.subplots(1, len(CURVES) + 1)
        for panel, k in zip(panels, CURVES, strict=False):
            draw_curves(panel, by_kind(runs), k, SPLIT)
            for run in runs:
                steps = run.steps(SPLIT)
                answers = [collect({run.seed: run.answers(SPLIT, step)}, "") for step in steps]
                _band(panel, run.method, steps, [a.scores(k, ESTIMATOR) for a in answers])
        draw_profile(panels[-1], table.rows, SPLIT)
        for row in table.rows:
            scores = [row.answers.scores(k, ESTIMATOR) for k in table.ks]
            _band(panels[-1], row.method, table.ks, scores)
        _, grpo, maxrl, _ = table.rows
        gap = difference(grpo, maxrl, CURVES[-1], ESTIMATOR)
        panels[-2].set_title(
            f"GRPO − MaxRL at the end: {signed(gap.value)} {interval(gap.interval, True)}"
        )
        legend(figure, "band: 95% interval over the mazes, this checkpoint fixed")
    return figure


def _band(panel: Axes, method: str, x: Sequence[int], scores: Sequence[NDArray[Any]]) -> None:
    low, high = zip(*(estimate(s).units for s in scores), strict=True)
    panel.fill_between(x, low, high, color=style(method)["color"], alpha=0.15, linewidth=0)


def show(console: Console, runs: Sequence[Run], folder: Path) -> None:
    """The table, the figure, and a sentence for each finding."""
    table = pass_at_k_table(runs, KS, SPLIT, ESTIMATOR)
    paths = save(draw(runs, table), folder / "demo")
    print_compact(console, table, "Mazes that were not trained on")
    for sentence in findings(table):
        console.print(f"• {sentence}", highlight=False)
    share = table.budgets[-1].waterline
    console.print(
        f"{method_label(METHODS[-1])} allocated by the waterline in {100 * share:.0f}% of its "
        "steps; the first epoch is uniform.",
        highlight=False, style="dim",
    )  # fmt: skip
    console.print(f"Figure: {paths[0]}", highlight=False)


@hydra.main(version_base="1.3", config_path="../conf", config_name="train")
def main(config: DictConfig) -> None:
    began = time.monotonic()
    with job():
        chosen = HydraConfig.get()
        if any(chosen.runtime.choices[c.partition("=")[0]] != c.partition("=")[2] for c in CHOSEN):
            raise BadInput(
                f"The demo compares {', '.join(METHODS)} in maze/demo: leave out experiment= and "
                "method=, or use experiments/train.py."
            )
        console = Console()
        console.print(__doc__.splitlines()[0], highlight=False)
        folder = Path(plain(config)["paths"]["results"]) / config.experiment
        listed = jobs(chosen.overrides.task)
        require_right(listed)
        logs = folder / ".jobs"
        start = partial(run_local, script=HERE / "train.py", logs=logs, workers=3, threads=1)
        try:
            error = carry_out(listed, start, "side by side on this machine")
        except KeyboardInterrupt:
            print("stopped: `make demo` continues where it was", file=sys.stderr)
            raise SystemExit(130) from None
        if error:
            raise error
        own = {listed_job.folder for listed_job in listed}
        there = load_runs(folder.parent, folder.name, lambda note: print_notes(console, [note]))
        show(console, [run for run in there if run.path in own], folder)
        seconds = time.monotonic() - began
        console.print(f"{seconds:.0f} s in all; `make reproduce-table4` is the real comparison.")


if __name__ == "__main__":
    run_command(main, HERE.parent / "conf", "train", example=CHOSEN, always=True)
