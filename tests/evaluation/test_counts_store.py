import numpy as np
import pandas as pd
import pytest

from waterline.evaluation import CountsStore
from waterline.runs import BadInput


@pytest.fixture
def store(tmp_path):
    return CountsStore(tmp_path / "eval" / "counts.parquet")


def write(store, step, prompts, n, c, split="dev"):
    store.write(step, split, np.array(prompts), np.full(len(prompts), n), np.array(c))


def test_a_store_without_a_file_is_empty(store):
    assert list(store.read().columns) == ["step", "split", "prompt", "n", "c"]
    assert len(store.at(0, "dev")) == 0
    assert store.held(0, "dev") == {}
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


def test_what_is_held_of_one_checkpoint_on_one_split(store):
    write(store, 5, [1, -2], 4, [0, 3])
    write(store, 5, [2**62], 8, [8])
    assert store.held(5, "dev") == {1: (4, 0), -2: (4, 3), 2**62: (8, 8)}
    assert store.held(6, "dev") == store.held(5, "test") == {}


def test_later_checkpoints_are_set_aside(store):
    for step in (0, 25, 50):
        write(store, step, [1], 4, [step // 25])
    store.truncate_after(25)
    assert store.read()["step"].tolist() == [0, 25]
    before = store.path.stat().st_mtime_ns
    store.truncate_after(25)
    assert store.path.stat().st_mtime_ns == before
    store.truncate_after(0)
    assert store.read()["step"].tolist() == [0]
    aside = [pd.read_parquet(store.path.with_suffix(f".{i}.parquet")) for i in (1, 2)]
    assert [rows["step"].tolist() for rows in aside] == [[50], [25]]


@pytest.mark.parametrize("length", [0, 1, 4, 100, -1])
def test_a_file_that_was_cut_is_a_sentence(store, length):
    write(store, 0, [1], 4, [2])
    store.path.write_bytes(store.path.read_bytes()[:length])
    with pytest.raises(BadInput, match=r"counts\.parquet cannot be read.*move it away"):
        store.read()


def test_a_note_on_sampling_binds_once_there_are_counts(store):
    store.use_sampling("dev", {"temperature": 2.0}, grows=True)
    store.use_sampling("dev", {"temperature": 1.0}, grows=True)
    write(store, 0, [1], 4, [2])
    store.use_sampling("dev", {"temperature": 1.0}, grows=False)
    with pytest.raises(BadInput, match=r"move .* away"):
        store.use_sampling("dev", {"temperature": 2.0}, grows=False)
    store.use_sampling("test", {"temperature": 2.0}, grows=True)
    note = store.path.with_name("counts-sampling.json")
    note.write_text("{", encoding="utf-8")
    with pytest.raises(BadInput, match=r"counts-sampling\.json cannot be read"):
        store.use_sampling("dev", {"temperature": 1.0}, grows=False)


def test_any_parquet_reader_sees_plain_columns(store):
    write(store, 3, [2**62], 4, [1])
    pd.testing.assert_frame_equal(pd.read_parquet(store.path), store.read())
    assert store.read()["prompt"].tolist() == [2**62]
