import numpy as np
import pandas as pd
import pytest

from reporting.image_runs import write_gradients, write_run
from waterline.evaluation import runs_interval, within_interval
from waterline.reporting import gradient_table, load_runs, markdown, shared_gradients
from waterline.reporting.kinds import Kind

COSINES = {
    ("maxrl", 16): (0.2, 0.3), ("sera", 16): (0.4, 0.6),
    ("maxrl", 64): (0.3, 0.3), ("sera", 64): (0.5, 0.7),
}  # fmt: skip
# The first prompt is the hard one; SERA drops the easy one at N0 = 64.
COUNTS = {
    ("maxrl", 16): (16, 16), ("sera", 16): (28, 4),
    ("maxrl", 64): (64, 64), ("sera", 64): (128, 0),
}  # fmt: skip
SERA = Kind(n0=16, method="sera")


def write(tmp_path, seed=0, cosines=COSINES, counts=COUNTS, **options):
    folder = write_run(tmp_path, "ce", seed)
    write_gradients(folder.root, cosines, counts, **options)
    return folder.root / "gradients"


def runs_of(tmp_path):
    return load_runs(tmp_path, "imagenet-laptop")


def test_values_by_hand(tmp_path):
    write(tmp_path)
    found = gradient_table(runs_of(tmp_path))
    assert [kind.label for kind in found.values] == [
        "MaxRL, N₀ = 16", "SERA, N₀ = 16", "MaxRL, N₀ = 64", "SERA, N₀ = 64",
    ]  # fmt: skip
    cosines = [
        [v[f"cosine_{name}"].value for name in ("sample", "mean", "expected")]
        for v in found.values.values()
    ]
    assert cosines[0] == pytest.approx([0.25, 0.35, 0.45])
    assert cosines[3] == pytest.approx([0.6, 0.7, 0.8])
    before = 1 - 0.99**15, 1 - 0.5**15
    after = 1 - 0.99**27, 1 - 0.5**3
    sera = found.values[SERA]
    assert sera["kappa_before_mean"].value == pytest.approx(np.mean(before))
    assert sera["kappa_before_sd"].value == pytest.approx(np.std(before))
    assert sera["kappa_after_mean"].value == pytest.approx(np.mean(after))
    assert sera["kappa_after_sd"].value == pytest.approx(np.std(after))
    assert sera["active"].value == 1
    dropped = found.values[Kind(n0=64, method="sera")]
    assert dropped["active"].value == 0.5
    assert dropped["kappa_after_mean"].value == pytest.approx(1 - 0.99**127)
    assert dropped["kappa_after_sd"].value == 0


def test_differences_are_paired_by_seed_and_batch(tmp_path):
    gains = np.array([[0.2, 0.3], [0.1, 0.3], [0.2, 0.1]])
    for seed, gain in enumerate(gains):
        cosines = {("maxrl", 16): (0.2, 0.4), ("sera", 16): tuple(np.add((0.2, 0.4), gain))}
        write(tmp_path, seed, cosines)
    found = gradient_table(runs_of(tmp_path))
    assert list(found.deltas) == [SERA]
    delta = found.deltas[SERA]["cosine_sample"]
    assert delta.value == pytest.approx(0.2)
    within = within_interval(gains.ravel(), [0, 0, 1, 1, 2, 2])
    assert delta.units == pytest.approx(within[1:])
    assert delta.runs == pytest.approx(runs_interval(gains.mean(axis=1)[:, None])[1:])
    assert (delta.basis, delta.unit, delta.excludes_zero) == ("runs", "batches", True)
    assert not any("checkpoints only" in note for note in found.notes)
    text = markdown(found, "Gradients")
    assert "| SERA − MaxRL, N₀ = 16 | difference | +0.2000 | +0.2000 | +0.2000 |" in text
    assert "|  | by runs | ahead | ahead | ahead |" in text
    assert "|  | batches |" in text
    assert "questions" not in text
    tidy = found.tidy()
    line = tidy[(tidy.method == "sera") & (tidy.quantity == "cosine_sample")].iloc[0]
    assert (line.n0, line.baseline, line.claim_basis, line.seeds) == (16, "maxrl", "runs", "0 1 2")
    assert line.delta == pytest.approx(0.2)


def test_one_seed_speaks_of_its_checkpoints(tmp_path):
    write(tmp_path)
    found = gradient_table(runs_of(tmp_path))
    assert "With 1 seed, claims are about these checkpoints only." in found.notes
    assert found.deltas[SERA]["cosine_sample"].basis == "batches"
    assert found.subtitle == (
        "Checkpoints at steps 30; 2 (checkpoint, batch) pairs, 2 resamplings of each; seeds 0."
    )


def test_a_difference_between_checkpoints_is_no_noise(tmp_path):
    """A curve that has no noise at its checkpoints has a *batches* interval without width."""
    file = write(tmp_path) / "cosines.parquet"
    rows = pd.read_parquet(file)
    curve = [rows.assign(checkpoint=30 * i, cosine=0.6 + 0.1 * i) for i in range(5)]
    pd.concat(curve).to_parquet(file)
    prompts = pd.read_parquet(file.with_name("fidelity.parquet"))
    pd.concat([prompts.assign(checkpoint=30 * i) for i in range(5)]).to_parquet(
        file.with_name("fidelity.parquet")
    )
    value = gradient_table(runs_of(tmp_path)).values[SERA]["cosine_sample"]
    assert (value.value, *value.units) == pytest.approx((0.8, 0.8, 0.8))


def test_one_batch_at_a_checkpoint_gives_no_interval_and_no_verdict(tmp_path):
    folder = write(tmp_path)
    for name in ("cosines", "fidelity"):
        rows = pd.read_parquet(folder / f"{name}.parquet")
        rows[rows.batch == 0].to_parquet(folder / f"{name}.parquet")
    found = gradient_table(runs_of(tmp_path))
    assert np.isnan(found.values[SERA]["cosine_sample"].units).all()
    assert "|  | by batches | – | – | – |" in markdown(found, "Gradients")


def test_a_method_without_a_closed_form_shows_none(tmp_path):
    file = write(tmp_path) / "cosines.parquet"
    rows = pd.read_parquet(file)
    rows[~((rows.kind == "expected") & (rows.method == "sera"))].to_parquet(file)
    found = gradient_table(runs_of(tmp_path))
    assert set(found.deltas[SERA]) & {"cosine_sample", "cosine_mean", "cosine_expected"} == {
        "cosine_sample",
        "cosine_mean",
    }
    text = markdown(found, "Gradients")
    assert "| SERA, N₀ = 16 | mean | 0.5000 | 0.6000 | – |" in text
    assert "|  | by batches | within noise | within noise | – |" in text


def test_gradients_that_are_zero_are_left_out_and_counted(tmp_path):
    file = write(tmp_path) / "cosines.parquet"
    rows = pd.read_parquet(file)
    zero = (rows.method == "maxrl") & (rows.n0 == 16) & (rows.batch == 0) & (rows["resample"] == 0)
    rows.assign(cosine=rows.cosine.mask(zero)).to_parquet(file)
    found = gradient_table(runs_of(tmp_path))
    assert found.values[Kind(n0=16, method="maxrl")]["cosine_sample"].value == pytest.approx(
        (0.3 + 0.3) / 2
    )
    assert any(note.startswith("MaxRL, N₀ = 16: 1 of 4 sampled gradients") for note in found.notes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="kind"), "no column kind: measure"),
        (lambda t: pd.concat([t, t]), "two rows for one checkpoint, batch"),
        (lambda t: t.assign(cosine=2.0), "rows with cosine < -1.0+1 or cosine > 1.0+1:"),
        (lambda t: t[t.method == "sera"], "of different methods"),
        (lambda t: t[(t.method == "sera") | (t.batch == 0)], "not of the same checkpoints"),
    ],
)
def test_broken_gradients_are_refused(tmp_path, change, words):
    file = write(tmp_path) / "cosines.parquet"
    change(pd.read_parquet(file)).to_parquet(file)
    with pytest.raises(ValueError, match=words):
        shared_gradients(runs_of(tmp_path))


def test_seeds_must_have_measured_the_same(tmp_path):
    write(tmp_path, 0)
    write(tmp_path, 1, units=((30, 0), (60, 0)))
    with pytest.raises(ValueError, match="not of the same checkpoints"):
        shared_gradients(runs_of(tmp_path))


def test_nothing_measured_is_one_sentence(tmp_path):
    write_run(tmp_path, "ce")
    with pytest.raises(ValueError, match="No finished cross-entropy run has gradients/cosines"):
        gradient_table(runs_of(tmp_path))
