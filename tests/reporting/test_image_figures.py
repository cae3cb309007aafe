import numpy as np
import pytest
from matplotlib.colors import to_hex

from reporting.image_runs import write_gradients, write_run
from waterline.reporting import load_runs
from waterline.reporting.figures import figure2, gradients_figure, style
from waterline.reporting.figures.series import rolling_mean

P = (0.0, 0.25, 0.5, 1.0)


def runs_of(tmp_path):
    return load_runs(tmp_path, "imagenet-laptop")


def lines_of(axes, method):
    return [
        line for line in axes.lines if to_hex(line.get_color()) == style(method)["color"].lower()
    ]


def test_figure2_has_the_four_panels_of_the_paper(tmp_path):
    for seed in range(2):
        write_run(tmp_path, "ce", seed)
        write_run(tmp_path, "sera", seed, estimate="history")  # not of this figure
        for n0 in (16, 64):
            for method in ("maxrl", "sera"):
                write_run(tmp_path, method, seed, n0=n0)
    figure = figure2(runs_of(tmp_path))
    first, second, profile, cosine = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "Pass@1 (%), dev", "Pass@128 (%), dev", "Final Pass@K (%), test",
        "Cosine with the CE gradient",
    ]  # fmt: skip
    assert cosine.get_title(loc="left") == "(d) Gradient cosine, N₀ = 64"
    mean = lines_of(first, "ce")[-1]
    assert list(mean.get_xdata()) == [0, 30, 60]
    assert mean.get_ydata() == pytest.approx(43.75 * np.array([0.1, 0.55, 1]))
    assert lines_of(second, "sera")[-1].get_ydata()[-1] == pytest.approx(75)
    k, value = lines_of(profile, "ce")[-1].get_data()
    assert list(k) == [2**i for i in range(11)]
    assert value[:2] == pytest.approx([43.75, 100 * (0 + 7 / 16 + 3 / 4 + 1) / 4])
    assert not lines_of(cosine, "ce")
    steps, smooth = lines_of(cosine, "sera")[-1].get_data()
    raw = 0.1 + 0.01 * steps
    assert list(steps) == [10, 20, 30, 40, 50, 60]
    assert smooth == pytest.approx(rolling_mean(raw[None], 5, center=True)[0])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [
        "Direct CE", "MaxRL, N₀ = 16", "SERA, N₀ = 16", "MaxRL, N₀ = 64", "SERA, N₀ = 64",
    ]  # fmt: skip


def test_figure2_needs_image_runs_of_one_setting(tmp_path):
    write_run(tmp_path, "sera", estimate="pilot")
    with pytest.raises(ValueError, match="this figure is of image runs"):
        figure2(runs_of(tmp_path))
    write_run(tmp_path, "sera", settings="n0-16_u0-0.1")
    write_run(tmp_path, "sera", settings="n0-16_u0-0.2")
    with pytest.raises(ValueError, match=r"SERA, N₀ = 16 was run .* choose with settings="):
        figure2(runs_of(tmp_path))


def test_centred_mean():
    assert rolling_mean(np.array([[1.0, 3.0, 8.0]]), 3, center=True).tolist() == [[2.0, 4.0, 5.5]]


def test_gradients_by_checkpoint_and_fidelity_by_prompt(tmp_path):
    cosines = {(m, n0): (0.2, 0.4, 0.6) for m in ("maxrl", "sera") for n0 in (16, 64)}
    counts = {(m, n0): (n0, 0 if m == "sera" else n0) for m, n0 in cosines}
    folder = write_run(tmp_path, "ce")
    write_gradients(folder.root, cosines, counts, units=((0, 0), (30, 0), (60, 0)))
    runs = runs_of(tmp_path)
    figure = gradients_figure(runs)
    left, right = figure.axes[:2]
    assert len(figure.axes) == 4
    assert right.get_title(loc="left") == "(b) Fidelity, N₀ = 16, step 30"
    mean, expected = lines_of(left, "sera")
    assert mean.get_xydata() == pytest.approx(np.array([[0, 0.2], [30, 0.4], [60, 0.6]]))
    assert expected.get_ydata() == pytest.approx([0.4, 0.6, 0.8])
    (points,) = lines_of(right, "sera")
    assert points.get_xydata() == pytest.approx(np.array([[0.01, 1 - 0.99**15], [0.5, 0]]))
    assert "step 60" in gradients_figure(runs, checkpoint=60).axes[1].get_title(loc="left")
    with pytest.raises(ValueError, match="choose checkpoint among 0, 30, 60"):
        gradients_figure(runs, checkpoint=7)
