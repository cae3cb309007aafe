import numpy as np
import pandas as pd
import pytest

from reporting.image_runs import estimates, write_run
from waterline.evaluation import runs_interval
from waterline.reporting import estimator_table, load_runs, markdown
from waterline.reporting.estimator_table import last_full_epoch


def table(tmp_path):
    return estimator_table(load_runs(tmp_path, "imagenet-laptop"))


def write(tmp_path, estimate, seed, errors, correlations, **options):
    rows = estimates(errors, correlations)
    write_run(tmp_path, "sera", seed, estimate=estimate, rows=rows, **options)


def test_means_over_the_last_epoch_and_then_over_seeds(tmp_path):
    # Two epochs of two steps; the third has begun and is not read.
    errors = {0: [0.9, 0.9, 0.1, 0.3, 0.9], 1: [0.9, 0.9, 0.2, 0.4, 0.9]}
    for seed, values in errors.items():
        write(tmp_path, "history", seed, values, [0.1, 0.1, 0.5, 0.7, 0.1])
        write(tmp_path, "pilot", seed, values, [0.1, 0.1, 0.9, 0.9, 0.1])
    found = table(tmp_path)
    assert "With 2 seeds in the smallest row, this is about these runs." in found.notes
    tidy = found.tidy()
    assert list(tidy.columns[:5]) == ["n0", "m", "method", "settings", "metric"]
    rows = tidy[["method", "n0", "m", "epoch"]].drop_duplicates()
    assert [tuple(row) for row in rows.to_numpy()] == [("pilot", 16, 8, 2), ("history", 16, 0, 2)]
    assert len(tidy) == 4
    mae, r = tidy[tidy.method == "history"].itertuples()
    assert (mae.value, r.value) == pytest.approx((0.25, 0.6))
    bounds = np.clip(runs_interval(np.array([[0.2], [0.3]]))[1:], 0, 1)
    assert (mae.runs_low, mae.runs_high) == pytest.approx(bounds)


def test_batches_without_a_correlation_are_left_out_and_counted(tmp_path):
    write(tmp_path, "history", 0, [0.1, 0.1, 0.2, 0.4], [None, None, None, 0.5])
    found = table(tmp_path)
    assert list(found.tidy().value) == pytest.approx([0.3, 0.5])
    note = "Historical estimate, N₀ = 16: 1 of 2 batches had no correlation and are left out."
    assert note in found.notes


def test_a_run_too_short_for_a_correlation_leaves_the_rest_of_the_table(tmp_path):
    write(tmp_path, "history", 0, [0.1, 0.3], [None, None])
    write(tmp_path, "pilot", 0, [0.1, 0.1], [0.5, 0.7])
    found = table(tmp_path)
    text = markdown(found, "Table 3")
    assert "| Historical estimate | mean | 16 | 0 | 1 | 1 | 0.2000 | – |" in text
    assert "| Pilot estimate | mean | 16 | 8 | 1 | 1 | 0.1000 | 0.6000 |" in text
    (note,) = [note for note in found.notes if "no Pearson r" in note]
    assert note.startswith("Historical estimate, N₀ = 16: no Pearson r")
    assert "seed 0" in note
    assert not any("left out" in note for note in found.notes)
    assert found.tidy().value.isna().sum() == 1


def test_the_papers_values_stand_next_to_ours(tmp_path):
    write(tmp_path, "pilot", 0, [0.1, 0.1], [0.5, 0.5])
    paper = pd.DataFrame(
        {
            "n0": 16.0,
            "method": "pilot",
            "metric": ["mae", "pearson_r"],
            "value": [0.0634, 0.9879],
        }
    )
    text = markdown(table(tmp_path), "Table 3", paper)
    assert "| Pilot estimate | mean | 16 | 8 | 1 | 1 | 0.1000 | 0.5000 |" in text
    assert "|  | paper |  |  |  |  | 0.0634 | 0.9879 |" in text


def test_the_last_full_epoch():
    metrics = pd.DataFrame({"epoch": [0, 0, 1, 1, 2], "value": range(5)})
    epoch, rows = last_full_epoch(metrics)
    assert (epoch, list(rows.value)) == (1, [2, 3])
    assert last_full_epoch(metrics[:4])[0] == 1
    assert last_full_epoch(metrics[:1])[0] == 0


def test_what_cannot_be_shown_is_one_sentence(tmp_path):
    write_run(tmp_path, "sera")
    with pytest.raises(ValueError, match="No finished run logged success/mae with a pilot"):
        table(tmp_path)


def test_seeds_of_unequal_length_are_refused(tmp_path):
    write(tmp_path, "history", 0, [0.1] * 2, [0.5] * 2)
    write(tmp_path, "history", 1, [0.1] * 4, [0.5] * 4)
    with pytest.raises(ValueError, match="ended in different epochs"):
        table(tmp_path)
