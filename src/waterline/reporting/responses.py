"""What a policy wrote, for the terminal: questions with their verdicts, responses of a question."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from rich.console import Console
from rich.text import Text

import waterline.reporting.render as render
from waterline.rewards import Verdict
from waterline.tasks import Prompt

_SHOWN = 48  # letters of a question in a line


def print_questions(
    console: Console,
    rows: pd.DataFrame,
    prompts: Mapping[int, Prompt],
    verdict: str | None,
    limit: int,
) -> None:
    """Print how many responses had each verdict: of all questions together, and of some.

    Args:
        rows: prompt and verdict of each response.
        verdict: the questions with most of it come first; None puts the fewest right ones first.
        limit: questions shown.
    """
    table = pd.crosstab(rows["prompt"], rows["verdict"])
    names = [name for name in Verdict if name in table]
    by = str(Verdict.correct) if verdict is None else verdict
    if by in table:
        table = table.sort_values(by, ascending=verdict is None, kind="stable")
    lines = [["all", *(str(table[name].sum()) for name in names), ""]]
    for prompt, counts in table.head(limit).iterrows():
        # What a chat template puts around the question stands in lines of its own.
        text = max(prompts[int(str(prompt))].text.strip().splitlines(), key=len)
        short = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
        lines.append([str(prompt), *(str(counts[name]) for name in names), short])
    console.print(render.text_grid(["Question", *map(str, names), ""], lines), highlight=False)
    console.print("prompt=<question> shows its responses.", style="dim")


def print_responses(
    console: Console, rows: pd.DataFrame, prompt: Prompt, verdict: str | None, limit: int
) -> None:
    """Print a question, its right answer, and responses of each verdict, or of one.

    Args:
        rows: the responses to the question. limit: those shown of each verdict, the first drawn.
    """
    console.print(Text(prompt.text.strip()))
    console.print(Text(f"\nRight answer: {prompt.answer}", style="bold"))
    for name in Verdict if verdict is None else [Verdict(verdict)]:
        found = rows[rows["verdict"] == name]
        if found.empty:
            continue
        console.print(Text(f"\n{name}: {len(found)} of {len(rows)}", style="bold"))
        for row in found.head(limit).itertuples():
            console.print(Text(f"– sample {row.sample}, {row.tokens} tokens", style="dim"))
            console.print(Text(str(row.text).strip()))
