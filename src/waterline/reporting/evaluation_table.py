"""A short table of what one run's evaluations say."""

from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from rich.table import Table

from waterline.reporting.answers import collect
from waterline.reporting.scores import estimate
from waterline.reporting.tables.text import interval


def print_counts(console: Console, counts: pd.DataFrame, split: str, ks: Sequence[int]) -> None:
    """Print Pass@K in percent with its *questions* interval, a row per step evaluated.

    ``counts`` has step, split, prompt, n, c; a K above the responses is shown as '–'.
    """
    _print(console, counts[counts["split"] == split], ["n", "c"], ks, "Prompts × responses")
    _explain(console, split, "95% intervals over questions, this checkpoint fixed.")


def print_probabilities(
    console: Console, probabilities: pd.DataFrame, split: str, ks: Sequence[int]
) -> None:
    """Print exact Pass@K in percent with its *questions* interval, a row per step evaluated.

    ``probabilities`` has step, split, prompt, p, top1.
    """
    _print(console, probabilities[probabilities["split"] == split], ["p"], ks, "Prompts")
    _explain(console, split, "exact Pass@K; 95% intervals over questions, this checkpoint fixed.")


def _print(
    console: Console, frame: pd.DataFrame, columns: list[str], ks: Sequence[int], size: str
) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    top1 = ["Top-1"] if "top1" in frame else []
    for name in ("Step", size, *top1, *(f"Pass@{k}" for k in ks)):
        table.add_column(name, justify="right")
    for step, rows in frame.groupby("step"):
        answers = collect({0: rows.set_index("prompt")[columns]}, f"Step {step}")
        cells = [f"{100 * rows['top1'].mean():.1f}"] if top1 else []
        for k in ks:
            if k > answers.most:
                cells.append("–")
                continue
            found = estimate(answers.scores(k, "unbiased"))
            cells.append(f"{found.value:.1f} {interval(found.units)}")
        table.add_row(str(step), answers.size.removesuffix(", exact"), *cells)
    console.print(table, highlight=False)


def _explain(console: Console, split: str, how: str) -> None:
    console.print(f"{split} split; {how}", style="dim")
