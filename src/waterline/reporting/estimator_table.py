"""Table 3: how close the success estimates are to the exact probabilities."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from waterline.evaluation import Estimate, estimate
from waterline.evaluation.intervals import SEEDS_FOR_A_CLAIM
from waterline.reporting.render import Section, interval, plain, seeds_word
from waterline.reporting.runs import Run, finished, nothing_to_show, one_of_each_seed
from waterline.runs import BadInput

Floats = NDArray[np.float64]
LABELS = {"pilot": "Pilot estimate", "history": "Historical estimate"}
# The metric as logged, its name in the paper's table, its heading.
MEASURES = (("success/mae", "mae", "MAE"), ("success/pearson", "pearson_r", "Pearson r"))
NOTE = (
    "Estimate against exact p over the prompts of a batch, averaged over the batches of the last "
    "full epoch, then over seeds."
)


@dataclass(frozen=True, slots=True)
class EstimatorRow:
    """One estimate at one budget; ``m`` pilot samples per prompt, ``values`` as in MEASURES."""

    p_hat: str
    n0: int
    m: int
    settings: str
    runs: tuple[Run, ...]
    epoch: int
    values: tuple[Estimate, ...]


@dataclass(frozen=True)
class EstimatorTable:
    """Mean absolute error and Pearson correlation of pilot and historical estimates."""

    rows: tuple[EstimatorRow, ...]
    notes: tuple[str, ...]
    subtitle: str = "Training batches of the last full epoch."

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run of every row."""
        return tuple(run for row in self.rows for run in row.runs)

    def sections(self, paper: pd.DataFrame | None = None) -> list[Section]:
        """Return one grid: the means over seeds, the paper's values, the runs intervals."""
        lines = []
        for row in self.rows:
            about = [str(row.n0), str(row.m), str(row.epoch + 1), str(len(row.runs))]
            name = LABELS[row.p_hat] + (f" ({row.settings})" if row.settings else "")
            lines.append([name, "mean", *about, *(plain(v.value, 4) for v in row.values)])
            blank = [""] * len(about)
            if paper is not None:
                theirs = [_paper(paper, row, name) for _, name, _ in MEASURES]
                lines.append(["", "paper", *blank, *(plain(value, 4) for value in theirs)])
            lines.append(["", "runs", *blank, *(interval(v.runs, digits=4) for v in row.values)])
        header = ["", "", "N₀", "m", "Epoch", "Seeds", *(title for _, _, title in MEASURES)]
        return [Section("Estimates against exact probabilities", header, lines, fixed=8)]

    def tidy(self) -> pd.DataFrame:
        """Return one line per row and measure."""
        return pd.DataFrame(
            {
                "n0": row.n0,
                "m": row.m,
                "method": row.p_hat,
                "settings": row.settings,
                "metric": name,
                "value": value.value,
                "runs_low": value.runs[0],
                "runs_high": value.runs[1],
                "epoch": row.epoch + 1,
                "seeds": " ".join(str(run.seed) for run in row.runs),
            }
            for row in self.rows
            for (_, name, _), value in zip(MEASURES, row.values, strict=True)
        )


def estimator_table(runs: Iterable[Run]) -> EstimatorTable:
    """Return the table of the finished runs whose counts came from a pilot or from the history.

    Steps without a value (a correlation is undefined where either side is constant) are left out
    and counted in the notes; a measure that a seed has in no step is not shown, and the notes say
    so. Epochs are counted from 1, as in the paper.

    Raises:
        BadInput: when no finished run logged how far its estimates are from exact probabilities.
    """
    done, notes = finished(runs)
    groups: dict[tuple[str, int, int, str], list[Run]] = {}
    for run in done:
        if run.p_hat in LABELS and run.n0 is not None and MEASURES[0][0] in run.metrics:
            m = int(run.setting("allocation.m", 0)) if run.p_hat == "pilot" else 0
            groups.setdefault((run.p_hat, run.n0, m, run.settings), []).append(run)
    if not groups:
        what = f"No finished run logged {MEASURES[0][0]} with a pilot or historical estimate"
        raise nothing_to_show(what, notes, "train one where the success probability is known")
    order = sorted(groups, key=lambda key: (key[1], list(LABELS).index(key[0]), *key[2:]))
    rows = []
    for key in order:
        alone = sum(other[:3] == key[:3] for other in groups) == 1
        rows.append(_row((*key[:3], "" if alone else key[3]), groups[key], notes))
    few = min(len(row.runs) for row in rows)
    if few < SEEDS_FOR_A_CLAIM:
        notes.append(f"With {seeds_word(few)} in the smallest row, this is about these runs.")
    how = "95% intervals. runs: seeds resampled."
    return EstimatorTable(tuple(rows), (NOTE, how, *notes))


def last_full_epoch(metrics: pd.DataFrame) -> tuple[int, pd.DataFrame]:
    """Return the number (from 0) and the rows of the last epoch that no other outnumbers.

    A last epoch that is not complete is dropped: of 100,000 steps with 5,005 an epoch, the 20th
    has 4,905 and the 19th is taken; of 100,100 steps, the 20th. A run's only epoch counts as full.
    """
    sizes = metrics.groupby("epoch").size()
    epoch = int(sizes.index[sizes == sizes.max()].max())
    return epoch, metrics[metrics.epoch == epoch]


def _row(key: tuple[str, int, int, str], runs: list[Run], notes: list[str]) -> EstimatorRow:
    label = f"{LABELS[key[0]]}, N₀ = {key[1]}"
    runs = one_of_each_seed(label, runs)
    epochs, means, undefined, steps = set(), [], 0, 0
    for run in runs:
        epoch, rows = last_full_epoch(run.metrics)
        values = rows.reindex(columns=[name for name, _, _ in MEASURES]).astype("float64")
        epochs.add(epoch)
        means.append(values.mean().to_numpy())
        undefined += int(values.dropna(axis="columns", how="all").isna().any(axis=1).sum())
        steps += len(values)
    if len(epochs) > 1:
        raise BadInput(f"{label}: the seeds ended in different epochs: train them equally long.")
    if undefined:
        notes.append(
            f"{label}: {undefined} of {steps} batches had no correlation and are left out."
        )
    scores = np.stack(means)
    for column, (_, _, title) in zip(scores.T, MEASURES, strict=True):
        if np.isnan(column).any():
            seeds = ", ".join(str(runs[i].seed) for i in np.flatnonzero(np.isnan(column)))
            notes.append(
                f"{label}: no {title}, which is undefined in every batch of seed {seeds}; a "
                "correlation needs estimates that differ, and a history has them from its second "
                "epoch on."
            )
    return EstimatorRow(*key, tuple(runs), epochs.pop(), tuple(map(_over_seeds, scores.T)))


def _over_seeds(means: Floats) -> Estimate:
    if np.isnan(means).any():
        return Estimate(unit="seeds")
    return estimate(means[:, None], "seeds", 1.0)


def _paper(paper: pd.DataFrame, row: EstimatorRow, metric: str) -> float:
    found = paper[(paper.method == row.p_hat) & (paper.n0 == row.n0) & (paper.metric == metric)]
    return float(found.value.iloc[0]) if len(found) else np.nan
