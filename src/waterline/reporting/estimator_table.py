"""Table 3: how close the success estimates are to the exact probabilities."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from waterline.evaluation import Estimate, estimate_of_seeds
from waterline.reporting.render import Section, Table, few_seeds, interval, paper_value, plain
from waterline.reporting.runs import Run, finished, nothing_to_show, one_of_each_seed
from waterline.runs import BadInput

LABELS = {"pilot": "Pilot estimate", "history": "Historical estimate"}
# The metric as logged, its name in the paper's table, its heading; its limits.
MEASURES = (("success/mae", "mae", "MAE"), ("success/pearson", "pearson_r", "Pearson r"))
LIMITS = {"mae": (0.0, 1.0), "pearson_r": (-1.0, 1.0)}
NOTE = (
    "Estimate against exact p over the prompts of a batch, averaged over the batches of the last "
    "full epoch, then over seeds."
)


@dataclass(frozen=True)
class EstimatorTable(Table):
    """Mean absolute error and Pearson correlation of pilot and historical estimates.

    ``measured`` has a line for each estimate, budget and measure, as :meth:`tidy` returns it;
    ``m`` is the pilot's samples per prompt.
    """

    measured: pd.DataFrame

    def sections(self, paper: pd.DataFrame | None = None) -> list[Section]:
        """Return one grid: the means over seeds, the paper's values, the runs intervals."""
        grid = []
        by = ["method", "settings", "n0", "m", "epoch", "seeds"]
        rows: Any = self.measured.groupby(by, sort=False)
        for (method, settings, n0, m, epoch, seeds), row in rows:
            about = [str(n0), str(m), str(epoch), str(len(seeds.split()))]
            blank = [""] * len(about)
            name = LABELS[method] + (f" ({settings})" if settings else "")
            grid.append([name, "mean", *about, *(plain(value, 4) for value in row.value)])
            if paper is not None:
                cell = {"method": method, "n0": n0}
                theirs = [paper_value(paper, metric=metric, **cell) for metric in row.metric]
                grid.append(["", "paper", *blank, *(plain(value, 4) for value in theirs)])
            bounds = zip(row.runs_low, row.runs_high, strict=True)
            grid.append(["", "runs", *blank, *(interval(pair, digits=4) for pair in bounds)])
        header = ["", "", "N₀", "m", "Epoch", "Seeds", *(title for _, _, title in MEASURES)]
        return [Section("Estimates against exact probabilities", header, grid, fixed=8)]

    def tidy(self) -> pd.DataFrame:
        """Return one line per row and measure."""
        return self.measured.copy()


def estimator_table(runs: Iterable[Run]) -> EstimatorTable:
    """Return the table of the finished runs whose counts came from a pilot or from the history.

    Steps without a value (a correlation is undefined where either side is constant) are left out
    and counted in the notes; a measure that a seed has in no step is not shown, and the notes say
    so. Epochs are counted from 1, as in the paper.

    Raises:
        BadInput: when no finished run logged how far its estimates are from exact probabilities.
    """
    done, notes = finished(runs)
    groups: dict[tuple[int, str, int, str], list[Run]] = {}
    for run in done:
        if run.p_hat in LABELS and run.n0 is not None and MEASURES[0][0] in run.metrics:
            m = int(run.setting("allocation.m", 0)) if run.p_hat == "pilot" else 0
            groups.setdefault((run.n0, run.p_hat, m, run.settings), []).append(run)
    if not groups:
        what = f"No finished run logged {MEASURES[0][0]} with a pilot or historical estimate"
        raise nothing_to_show(what, notes, "train one where the success probability is known")
    alike = Counter(key[:3] for key in groups)
    lines: list[dict[str, object]] = []
    for key in sorted(groups, key=lambda key: (key[0], list(LABELS).index(key[1]), *key[2:])):
        settings = key[3] if alike[key[:3]] > 1 else ""
        lines += _lines(*key[:3], settings, groups[key], notes)
    few = min(map(len, groups.values()))
    notes += few_seeds(few, " in the smallest row, this is about these runs.")
    return EstimatorTable(
        pd.DataFrame(lines),
        runs=tuple(run for members in groups.values() for run in members),
        subtitle="Training batches of the last full epoch.",
        notes=(NOTE, "95% intervals. runs: Student's t over the seeds.", *notes),
    )


def last_full_epoch(metrics: pd.DataFrame) -> tuple[int, pd.DataFrame]:
    """Return the number (from 0) and the rows of the last epoch that no other outnumbers.

    A last epoch that is not complete is dropped: of 100,000 steps with 5,005 an epoch, the 20th
    has 4,905 and the 19th is taken; of 100,100 steps, the 20th. A run's only epoch counts as full.
    """
    sizes = metrics.groupby("epoch").size()
    epoch = int(sizes.index[sizes == sizes.max()].max())
    return epoch, metrics[metrics.epoch == epoch]


def _lines(
    n0: int, p_hat: str, m: int, settings: str, runs: list[Run], notes: list[str]
) -> list[dict[str, object]]:
    label = f"{LABELS[p_hat]}, N₀ = {n0}"
    runs = one_of_each_seed(label, runs)
    epochs, last = zip(*(last_full_epoch(run.metrics) for run in runs), strict=True)
    if len(set(epochs)) > 1:
        raise BadInput(f"{label}: the seeds ended in different epochs: train them equally long.")
    names = [name for name, _, _ in MEASURES]
    batches = [rows.reindex(columns=names).astype("float64") for rows in last]
    measured = [rows.dropna(axis="columns", how="all") for rows in batches]
    undefined = np.concatenate([rows.isna().any(axis=1) for rows in measured])
    if undefined.any():
        notes.append(
            f"{label}: {undefined.sum()} of {len(undefined)} batches had no correlation and are "
            "left out."
        )
    about = {"n0": n0, "m": m, "method": p_hat, "settings": settings}
    rest = {"epoch": epochs[0] + 1, "seeds": " ".join(str(run.seed) for run in runs)}
    lines = []
    means = np.stack([rows.mean().to_numpy() for rows in batches], axis=1)
    for mean, (_, name, title) in zip(means, MEASURES, strict=True):
        missing = [str(run.seed) for run, gap in zip(runs, np.isnan(mean), strict=True) if gap]
        if missing:
            notes.append(
                f"{label}: no {title}, which is undefined in every batch of seed "
                f"{', '.join(missing)}; a correlation needs estimates that differ, and a history "
                "has them from its second epoch on."
            )
        found = Estimate() if missing else estimate_of_seeds(mean, LIMITS[name])
        low, high = found.runs
        value = {"metric": name, "value": found.value, "runs_low": low, "runs_high": high}
        lines.append(about | value | rest)
    return lines
