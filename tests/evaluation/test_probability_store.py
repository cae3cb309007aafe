import numpy as np
import pandas as pd
import pytest

from waterline.evaluation import ProbabilityStore

COLUMNS = {"step": "int64", "split": "str", "prompt": "int64", "p": "float64", "top1": "bool"}


@pytest.fixture
def store(tmp_path):
    return ProbabilityStore(tmp_path / "eval" / "probabilities.parquet")


def write(store, step, prompts, p, split="dev"):
    p = np.array(p)
    store.write(step, split, np.array(prompts, dtype=np.int64), p, p > 0.5)


def test_a_store_without_a_file_is_empty(store):
    assert list(store.read().columns) == list(COLUMNS)
    assert store.at(0, "dev").empty
    store.truncate_after(0)
    assert not store.path.exists()


def test_rows_stand_once_and_are_ordered(store):
    write(store, 5, [2, -9], [0.25, 1.0])
    write(store, 0, [7], [5e-324], split="test")
    write(store, 5, [2, 8], [0.75, 0.0])
    assert store.at(5, "dev")["prompt"].tolist() == [-9, 2, 8]
    assert store.at(5, "dev")["p"].tolist() == [1.0, 0.75, 0.0]
    assert store.at(5, "dev")["top1"].tolist() == [True, True, False]
    assert store.at(5, "test").empty
    assert store.at(0, "test")["p"].tolist() == [5e-324]
    assert store.read()["split"].tolist() == ["dev"] * 3 + ["test"]


def test_any_parquet_reader_sees_plain_columns_of_the_same_bits(store):
    p = np.random.default_rng(0).random(50) ** 200
    write(store, 3, 2**62 + np.arange(50), p)
    rows = pd.read_parquet(store.path)
    assert {name: str(dtype) for name, dtype in rows.dtypes.items()} == COLUMNS
    assert rows["prompt"].tolist() == (2**62 + np.arange(50)).tolist()
    assert rows["p"].to_numpy().tobytes() == p.tobytes()
    pd.testing.assert_frame_equal(rows, store.read())


def test_later_checkpoints_can_be_dropped(store):
    for step in (0, 25, 50):
        write(store, step, [1], [step / 100])
    store.truncate_after(25)
    assert store.read()["step"].tolist() == [0, 25]
    before = store.path.stat().st_mtime_ns
    store.truncate_after(25)
    assert store.path.stat().st_mtime_ns == before
    assert not list(store.path.parent.glob(".*"))


def test_a_split_without_a_readable_image_has_no_rows(store):
    write(store, 0, [], [])
    assert store.at(0, "dev").empty
    assert list(store.read().columns) == list(COLUMNS)
