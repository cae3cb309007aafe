"""Jobs report as they run, fail without stopping the others, and are told apart by name."""

import io

import pytest
from rich.console import Console

from waterline.launch.job_watch import JobWatch, label
from waterline.launch.jobs import run_local
from waterline.runs import BadInput


def script(tmp_path, name: str, body: str) -> tuple[str, ...]:
    path = tmp_path / f"{name}.py"
    path.write_text(body)
    return (str(path), f"method={name}")


def test_a_failed_job_is_shown_and_named_and_the_others_finish(tmp_path):
    good = script(tmp_path, "good", "print('step 3/10: fine')")
    bad = script(tmp_path, "bad", "raise SystemExit('no such maze')")
    screen, told = Console(file=io.StringIO(), width=200), []
    with JobWatch(screen, "Two jobs", 2) as watch, pytest.raises(BadInput, match=r"1 of 2 .*bad"):
        run_local([bad, good], 2, 1, watch.ended, lambda *line: told.append(line))
    shown = screen.file.getvalue()
    assert told[0] == (good, "step 3/10: fine\n") or told[1] == (good, "step 3/10: fine\n")
    assert "FAILED" in shown
    assert "no such maze" in shown
    assert "done at 0.0 min: good" in shown


def test_a_terminal_has_a_bar_with_the_steps_of_a_running_job():
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    command = ("train.py", "method=sera", "seed=1")
    with JobWatch(screen, "One job", 1) as watch:
        watch.told(command, "2026 step 30/200: loss 1")
        watch.told(command, "nothing to count")
        watch._progress.refresh()
        assert "30/200" in screen.file.getvalue()
        watch.ended(command, 0, "")


def test_labels_tell_jobs_apart():
    row = ("train.py", "experiment=maze/laptop", "method=sera", "losses=seqnorm", "seed=1")
    assert label(row) == "sera seqnorm seed=1"
    assert label(("train.py", "method=sera", "stage=base", "seed=2")) == "base seed=2"
    assert label(("evaluate.py", "run=results/x", "split=test")) == "results/x"
