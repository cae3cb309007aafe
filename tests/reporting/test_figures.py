import numpy as np
import pytest

from waterline.allocation import WaterlineAllocator, fidelity
from waterline.reporting import load_runs
from waterline.reporting.figures import figure1, figure3, metrics_figure, style
from waterline.reporting.figures.figure1 import PAIR, angle, direction
from waterline.reporting.figures.figure3 import default_ks
from waterline.reporting.figures.series import metric_series, pass_at_k_series, rolling_mean


@pytest.fixture
def runs(make_run, tmp_path):
    for seed in range(2):
        for name in ("token-mean", "seqnorm"):
            for method, gain in (("maxrl", 0.0), ("sera", 0.1)):
                p = np.linspace(0.02, 0.6 + 0.02 * seed, 20) + gain
                make_run(
                    method,
                    seed,
                    p=p,
                    n=64,
                    normalisation=name,
                    settings=f"n0-16_{name}",
                    base=np.linspace(0, 0.3, 20),
                )
    return load_runs(tmp_path / "results", "maze-laptop")


def lines_of(axes, method):
    return [line for line in axes.lines if line.get_color() == style(method)["color"]]


def test_figure1_is_the_real_allocation():
    figure = figure1()
    curves, _, counts = figure.axes
    middle = curves.lines[1]
    assert middle.get_label() == "N = 16"
    p, kappa = middle.get_data()
    assert kappa == pytest.approx(fidelity(p, np.full(p.shape, 16)))
    p, n = lines_of(counts, "sera")[0].get_data()
    expected = WaterlineAllocator(n_min=2, n_max=64, u0=0.05).allocate(p, n0=16)
    assert list(n) == list(expected)
    assert n.sum() == 16 * len(p)


def test_uniform_counts_turn_the_batch_gradient_and_the_waterline_turns_it_back():
    target = angle(direction(PAIR, np.array([10**6, 10**6])))
    uniform = angle(direction(PAIR, np.array([16, 16])))
    waterline = angle(direction(PAIR, WaterlineAllocator().allocate(PAIR, n0=16)))
    assert target == pytest.approx(45)
    assert abs(waterline - target) < 0.2 * abs(uniform - target)


def test_figure3_shows_each_normalisation_and_method(runs):
    figure = figure3(runs)
    assert len(figure.axes) == 2 * 4
    assert [axes.get_ylabel() for axes in figure.axes[:4]] == [
        "Pass@1 (%), dev", "Pass@4 (%), dev", "Pass@32 (%), dev", "Final Pass@K (%), test",
    ]  # fmt: skip
    mean = lines_of(figure.axes[0], "sera")[-1]
    assert list(mean.get_xdata()) == [0, 20, 40, 60]
    assert len(lines_of(figure.axes[0], "sera")) == 3  # two seeds and their mean
    profile = lines_of(figure.axes[3], "sera")[-1].get_data()
    assert list(profile[0]) == [1, 2, 4, 8, 16, 32, 64]
    assert list(np.diff(profile[1]) > 0) == [True] * 6
    assert lines_of(figure.axes[3], "base")


def test_figure3_refuses_k_above_the_responses(runs):
    with pytest.raises(ValueError, match="needs 128 responses"):
        figure3(runs, curve_ks=[1, 128])
    with pytest.raises(ValueError, match="choose another curve_split"):
        figure3(runs, curve_split="train")


def test_default_ks_are_those_of_the_paper_at_its_scale(make_run, tmp_path):
    make_run(n=2048)
    assert default_ks(load_runs(tmp_path / "results", "maze-laptop"), "dev") == [1, 128, 1024]


@pytest.mark.parametrize(
    "names",
    [
        ("groups/mixed_of_batch", "groups/mixed_of_active", "allocation/active_fraction"),
        ("policy/entropy", "response/length", "grad/norm"),
    ],
)
def test_diagnostics_are_drawn_with_labels(runs, names):
    figure = metrics_figure(runs, names)
    assert len(figure.axes) == 6
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert lines_of(axes, "sera")
        assert lines_of(axes, "maxrl")


def test_one_seed_shows_single_steps_and_the_trailing_mean(make_run, tmp_path):
    make_run("sera")
    found = load_runs(tmp_path / "results", "maze-laptop")
    figure = metrics_figure(found, ["response/length"])
    raw, mean = lines_of(figure.axes[0], "sera")
    assert mean.get_ydata()[0] == raw.get_ydata()[0]
    assert mean.get_ydata()[-1] == pytest.approx(raw.get_ydata()[-50:].mean())


def test_series_keep_the_steps_that_all_seeds_have(make_run, tmp_path):
    make_run("sera", 0)
    make_run("sera", 1)
    found = load_runs(tmp_path / "results", "maze-laptop")
    steps, values = metric_series(found, "grad/norm")
    assert 5 not in steps
    assert values.shape == (2, 59)
    steps, values = pass_at_k_series(found, 1, "dev", "unbiased")
    assert list(steps) == [0, 20, 40, 60]
    assert values[:, -1] == pytest.approx(43.75)
    assert metric_series(found, "lr")[0].size == 0


def test_trailing_mean():
    assert rolling_mean(np.array([[1.0, 3.0, 5.0]]), 2).tolist() == [[1.0, 2.0, 4.0]]


def test_mixed_settings_are_refused(make_run, tmp_path):
    make_run("sera", settings="n0-8")
    make_run("sera", settings="n0-16")
    with pytest.raises(ValueError, match="choose with settings="):
        metrics_figure(load_runs(tmp_path / "results", "maze-laptop"), ["grad/norm"])


def test_every_method_keeps_its_own_look():
    looks = {
        str((style(m)["color"], style(m)["linestyle"]))
        for m in ("base", "maxrl", "sera", "grpo", "dr_grpo", "rloo", "pkpo", "reinforce")
    }
    assert len(looks) == 8
    assert style("something_new") == style("something_new")
    assert style("something_new")["label"] == "something_new"
