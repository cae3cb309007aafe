"""The short form of a Pass@K table, for a terminal of 80 columns."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from waterline.reporting import load_runs, pass_at_k_table, print_compact

GAINS = {"grpo": -0.15, "maxrl": 0.0, "sera": 0.05}
QUESTIONS = np.linspace(0.2, 0.8, 40)


def printed(tmp_path, ks, width=80):
    table = pass_at_k_table(load_runs(tmp_path / "results", "maze-laptop"), ks)
    text = StringIO()
    print_compact(Console(file=text, width=width), table, "Pass@K on new mazes")
    return table, text.getvalue()


@pytest.mark.parametrize("ks", [(1, 8, 32, 64), (1, 2, 4, 8, 16)])
def test_rows_and_differences_stand_in_one_block_of_80_columns(make_run, tmp_path, ks):
    for method, gain in GAINS.items():
        make_run(method, p=QUESTIONS + gain, n=64)
    table, text = printed(tmp_path, ks)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    headers = [line.split() for line in lines if "K = " in line]
    assert headers == [
        [*title.split(), *(word for k in ks for word in ("K", "=", str(k)))]
        for title in ("Pass@K (%)", "Points")
    ]
    assert "…" not in text
    assert "loss: Token-mean." in text
    for row, values in zip(table.rows, table.values, strict=True):
        (line,) = [
            line for line in lines if line.startswith(f"{row.label.removeprefix('Token-mean ')} ")
            and "−" not in line.split(" ")[1]
        ]  # fmt: skip
        assert line.split()[-len(ks) :] == [f"{value.value:.1f}" for value in values]
    for delta in filter(None, table.deltas):
        at = next(i for i, line in enumerate(lines) if line.startswith(delta.names))
        shown = [float(word.replace("−", "-")) for word in lines[at].split()[3:]]
        assert shown == pytest.approx([value.value for value in delta.values], abs=0.05)
        low, high = delta.values[0].interval
        assert f"{low:+.1f}, {high:+.1f}".replace("-", "−") in lines[at + 1]
        assert lines[at + 2].split()[0] == {"grpo": "behind", "sera": "ahead"}[delta.row.method]
    claim = "95% interval over questions; with 1 seed, about these checkpoints only."
    assert claim in " ".join(text.split())


def test_three_seeds_use_the_runs_interval_and_two_losses_are_named(make_run, tmp_path):
    for seed in range(3):
        for loss in ("token-mean", "seqnorm"):
            for method in ("maxrl", "sera"):
                p = QUESTIONS + GAINS[method] + 0.02 * seed
                make_run(method, seed, p=p, normalisation=loss, settings=f"n0-16_{loss}")
    _, text = printed(tmp_path, (1, 4))
    assert "Seqnorm SERA − MaxRL" in text
    assert "loss:" not in text
    assert text.splitlines()[-1] == (
        "Below each difference its 95% interval over seeds and questions."
    )


def test_without_a_baseline_only_the_means_are_printed(make_run, tmp_path):
    make_run("sera")
    _, text = printed(tmp_path, (1, 4))
    assert "Points" not in text
    assert "SERA" in text
