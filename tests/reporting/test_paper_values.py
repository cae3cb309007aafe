from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

PAPER = Path(__file__).parents[2] / "results" / "paper"
FILES = sorted(PAPER.glob("*.csv"))
COLUMNS = [
    "table", "task", "dataset", "normalisation", "n0", "method", "metric", "k", "value", "low",
    "high", "unit", "step", "source",
]  # fmt: skip


def read(name):
    return pd.read_csv(PAPER / name).fillna({"normalisation": ""})


def test_every_table_of_sera_is_there():
    assert {f"sera-table{i}.csv" for i in range(1, 10)} <= {file.name for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_are_tidy(file):
    frame = pd.read_csv(file)
    assert list(frame.columns) == COLUMNS
    assert frame[["method", "metric", "value", "unit", "source"]].notna().all(None)
    key = ["task", "dataset", "normalisation", "n0", "method", "metric", "k", "step"]
    assert not frame.duplicated(key).any()


@pytest.mark.parametrize("number", [1, 2, 4, 6, 8])
def test_pass_at_k_grows_with_k(number):
    frame = read(f"sera-table{number}.csv")
    frame = frame[frame.metric == "pass_at_k"]
    keys = ["dataset", "normalisation", "n0", "method"]
    for _, row in frame.groupby(keys, dropna=False):
        values = row.sort_values("k").value
        assert len(values) > 3
        assert all(a < b for a, b in pairwise(values))


@pytest.mark.parametrize(
    ("profile", "differences"),
    [("sera-table1", "sera-table1"), ("sera-table1", "sera-table5"),
     ("sera-table6", "sera-table7"), ("sera-table8", "sera-table9")],
)  # fmt: skip
def test_differences_are_those_of_the_profiles(profile, differences):
    values = read(f"{profile}.csv")
    values = values[values.metric == "pass_at_k"]
    deltas = read(f"{differences}.csv")
    deltas = deltas[deltas.metric == "delta_vs_maxrl"]
    assert len(deltas)
    for delta in deltas.itertuples():
        same = values[
            (values.dataset == delta.dataset)
            & (values.normalisation == delta.normalisation)
            & (values.k == delta.k)
        ].set_index("method")
        assert same.value["sera"] - same.value["maxrl"] == pytest.approx(delta.value, abs=0.0101)
        assert pd.isna(delta.low) or delta.low <= delta.value <= delta.high


def test_gains_that_the_text_of_sera_names():
    maze = read("sera-table4.csv").set_index(["normalisation", "method", "k"]).value
    assert maze["token-mean", "sera", 128] - maze["token-mean", "maxrl", 128] == pytest.approx(4.84)
    assert maze["seqnorm", "sera", 128] - maze["seqnorm", "maxrl", 128] == pytest.approx(3.28)
