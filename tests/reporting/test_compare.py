import pytest

from waterline.reporting import compare, load_runs


def pair(tmp_path):
    runs = load_runs(tmp_path / "results", "maze-laptop")
    return [r for r in runs if r.method == "sera"], [r for r in runs if r.method == "maxrl"]


def test_three_seeds_use_the_runs_interval(make_run, tmp_path):
    for seed in range(3):
        make_run("maxrl", seed, p=[0.25] * 4)
        make_run("sera", seed, p=[0.5] * 4)
    assert compare(*pair(tmp_path), k=1) == (
        "SERA − MaxRL at Pass@1: +25.0 points [+25.0, +25.0] (runs): ahead"
    )


def test_noise_is_called_noise(make_run, tmp_path):
    for seed, gain in enumerate((-0.25, 0.25, 0.125)):
        make_run("maxrl", seed, p=[0.5] * 4)
        make_run("sera", seed, p=[0.5 + gain] * 4)
    assert compare(*pair(tmp_path), k=1) == (
        "SERA − MaxRL at Pass@1: +4.2 points [−25.0, +25.0] (runs): within noise"
    )


def test_one_seed_speaks_of_its_checkpoints(make_run, tmp_path):
    make_run("maxrl", 0, p=[0.5] * 4)
    make_run("sera", 0, p=[0.25] * 4)
    make_run("sera", 1, state="preempted")
    assert compare(*pair(tmp_path), k=1) == (
        "SERA − MaxRL at Pass@1: −25.0 points [−25.0, −25.0] (questions): behind; with 1 seed, "
        "about these checkpoints only. Left out, not finished: sera/n0-16/seed-1 (preempted)"
    )


def test_two_settings_on_one_side_are_refused(make_run, tmp_path):
    make_run("maxrl")
    make_run("sera", settings="n0-8")
    make_run("sera", settings="n0-16")
    with pytest.raises(ValueError, match="of 2 kinds"):
        compare(*pair(tmp_path), k=1)


def test_sides_without_a_shared_seed_are_refused(make_run, tmp_path):
    make_run("maxrl", 0)
    make_run("sera", 1)
    with pytest.raises(ValueError, match="share no seed"):
        compare(*pair(tmp_path), k=1)
