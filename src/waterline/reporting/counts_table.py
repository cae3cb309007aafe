"""A short table of what one run's counts say."""

from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from rich.table import Table

from waterline.evaluation import pass_at_k, questions_interval


def print_counts(console: Console, counts: pd.DataFrame, split: str, ks: Sequence[int]) -> None:
    """Print Pass@K in percent with its *questions* interval, a row per step evaluated."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("Step", "Prompts × responses", *(f"Pass@{k}" for k in ks)):
        table.add_column(name, justify="right")
    for step, rows in counts[counts["split"] == split].groupby("step"):
        n, c = rows["n"].to_numpy(), rows["c"].to_numpy()
        cells = []
        for k in ks:
            if k > n.min():
                cells.append("–")
                continue
            value, low, high = questions_interval(pass_at_k(n, c, k))
            cells.append(f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]")
        table.add_row(str(step), f"{len(rows)} × {n.min()}", *cells)
    console.print(table, highlight=False)
    console.print(
        f"{split} split; 95% intervals over questions, this checkpoint fixed.", style="dim"
    )
