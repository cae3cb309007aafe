import numpy as np
import pandas as pd
import pytest

from waterline.evaluation import CountsStore


@pytest.fixture
def store(tmp_path):
    return CountsStore(tmp_path / "eval" / "counts.parquet")


def write(store, step, prompts, n, c, split="dev"):
    store.write(step, split, np.array(prompts), np.full(len(prompts), n), np.array(c))


def test_a_store_without_a_file_is_empty(store):
    assert list(store.read().columns) == ["step", "split", "prompt", "n", "c"]
    assert len(store.at(0, "dev")) == 0
    assert store.missing(0, "dev", [3, 1], n=4) == [3, 1]
    store.truncate_after(0)
    assert not store.path.exists()


def test_rows_stand_once_and_are_ordered(store):
    write(store, 5, [2, -9], 4, [1, 0])
    write(store, 0, [7], 4, [4], split="test")
    write(store, 5, [2, 8], 8, [3, 5])
    rows = store.at(5, "dev")
    assert rows[["prompt", "n", "c"]].to_numpy().tolist() == [[-9, 4, 0], [2, 8, 3], [8, 8, 5]]
    assert len(store.at(5, "test")) == 0
    assert store.at(0, "test")["c"].tolist() == [4]
    assert {str(t) for t in store.read()[["step", "prompt", "n", "c"]].dtypes} == {"int64"}


def test_what_is_missing_has_fewer_responses(store):
    write(store, 5, [1, 2], 4, [0, 0])
    assert store.missing(5, "dev", [3, 2, 1], n=2) == [3], "more responses are kept"
    assert store.missing(5, "dev", [3, 2, 1], n=4) == [3]
    assert store.missing(5, "dev", [3, 2, 1], n=8) == [3, 2, 1]
    assert store.missing(6, "dev", [1], n=4) == [1]
    assert store.missing(5, "test", [1], n=4) == [1]


def test_later_checkpoints_can_be_dropped(store):
    for step in (0, 25, 50):
        write(store, step, [1], 4, [step // 25])
    store.truncate_after(25)
    assert store.read()["step"].tolist() == [0, 25]
    before = store.path.stat().st_mtime_ns
    store.truncate_after(25)
    assert store.path.stat().st_mtime_ns == before


def test_any_parquet_reader_sees_plain_columns(store):
    write(store, 3, [2**62], 4, [1])
    pd.testing.assert_frame_equal(pd.read_parquet(store.path), store.read())
    assert store.read()["prompt"].tolist() == [2**62]
