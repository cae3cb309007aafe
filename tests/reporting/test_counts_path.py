"""From the run folder to the printed table, counts pass at most five files of reporting."""

import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
from hydra import compose, initialize_config_dir
from rich.console import Console

from waterline.evaluation import Estimate, Interval
from waterline.reporting import PassAtKTable, report
from waterline.reporting.pass_at_k import Comparison
from waterline.reporting.render import Section
from waterline.reporting.rows import Answers, Row

CONF = Path(__file__).parents[2] / "conf"
CARRIERS = (np.ndarray, Answers, Row, Interval, Estimate, Comparison, PassAtKTable, Section)


def carries(value):
    """Whether a value holds counts (n, c), or Pass@K and intervals that were made of them."""
    if isinstance(value, pd.DataFrame):
        return "c" in value
    if isinstance(value, Mapping):
        return any(map(carries, value.values()))
    if isinstance(value, CARRIERS):
        return True
    return isinstance(value, list | tuple) and any(map(carries, value))


def files_passed(call):
    """The modules of reporting and evaluation of which a function held such a value."""
    found = set()

    def watch(frame, event, argument):
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("waterline.reporting", "waterline.evaluation")) or name in found:
            return
        # On the call its arguments, on the return all that it held and what it gives back.
        if event in ("call", "return") and carries([*frame.f_locals.values(), argument]):
            found.add(name)

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {name.removeprefix("waterline.") for name in found}


def test_counts_pass_five_files_and_two_estimators(make_run, tmp_path):
    for seed in range(2):
        for method in ("maxrl", "sera"):
            make_run(method, seed)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("report", [f"root={tmp_path / 'results'}", "table=4"])
    text = StringIO()
    passed = files_passed(lambda: report(config, Console(file=text, width=200)))
    assert "Token-mean SERA − MaxRL" in text.getvalue()
    reporting = {name for name in passed if name.startswith("reporting")}
    assert reporting == {
        "reporting.runs",  # reads n and c of each run
        "reporting.rows",  # stacks them over seeds, and asks for Pass@K
        "reporting.pass_at_k",  # the table
        "reporting.render",  # its text, on the terminal and in the files
        "reporting.command",  # hands the table on
    }
    # Functions of arrays, which give arrays or bounds back.
    assert passed - reporting == {"evaluation.pass_at_k", "evaluation.intervals"}
