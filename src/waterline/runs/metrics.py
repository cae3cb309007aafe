"""Every metric that a run writes, as ``metrics.csv`` next to this file lists them.

The names are equal in ``metrics.jsonl``, in Weights & Biases and in the figures; training writes
no name that is missing there, figures take their axis labels from it, and ``docs/metrics.md`` is
made from it.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from waterline.runs import BadInput


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name as written, a label for axes, its unit ("1": none), what it means.

    ``tasks`` is 'images' where only image classification writes it, whose success probability is
    known and whose responses are one label; 'sequences' where only the other tasks do; else 'all'.
    """

    name: str
    label: str
    unit: str
    meaning: str
    tasks: str = "all"

    @property
    def axis(self) -> str:
        """The label with its unit, as an axis shows it."""
        return self.label if self.unit == "1" else f"{self.label} ({self.unit})"


with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as _table:
    METRICS = {row["name"]: Metric(**row) for row in csv.DictReader(_table)}


def metric(name: str) -> Metric:
    """Return the documented metric called ``name`` (``eval/pass@8`` is one of ``eval/pass@{K}``).

    Raises:
        BadInput: when no metric of this name is documented.
    """
    key = re.sub(r"^eval/pass@\d+$", "eval/pass@{K}", name)
    if key not in METRICS:
        raise BadInput(
            f"Metric '{name}' is not documented in waterline/runs/metrics.csv: add a row "
            "there or use one of its names."
        )
    return METRICS[key]


def glossary() -> str:
    """Return the table of all metrics as Markdown, for ``docs/metrics.md``."""
    lines = ["| metric | unit | tasks | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{m.name}` | {'–' if m.unit == '1' else m.unit} | {m.tasks} | "
        f"{m.meaning.replace('|', '&#124;')} |"
        for m in METRICS.values()
    ]
    return "\n".join(lines) + "\n"
