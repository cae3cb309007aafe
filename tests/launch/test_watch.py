"""The watch reads run folders: what has started, how far it is, how it ended."""

import io
import json
import os
import time

from rich.console import Console

from waterline.launch.watch import Watch, progress
from waterline.runs import RunFolder


def write(root, state: str, steps: list[int], final: str | None = None) -> None:
    root.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(root)
    folder.config.write_text("method: sera\ntraining: {steps: 200}\nsupervised: {steps: 40}\n")
    folder.set_state(state)
    rows = [{"step": s, "reward/mean": 0.25, "groups/mixed_of_batch": 0.5} for s in steps]
    # The last line is being written.
    folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 9')
    if final:
        (root / "final.json").write_text(json.dumps({"asked": {}, "state": final}))


def test_progress_is_that_of_the_last_whole_row(tmp_path):
    assert progress(tmp_path) is None
    write(tmp_path, "running", [*range(1, 31)])
    found = progress(tmp_path)
    assert (found.state, found.step, found.of) == ("running", 30, 200)
    assert found.row["reward/mean"] == 0.25
    RunFolder(tmp_path).config.write_text("method: base\nsupervised: {steps: 40}\n")
    assert progress(tmp_path).of == 40


def test_what_was_written_earlier_is_not_running(tmp_path):
    write(tmp_path, "running", [1])
    past = time.time() - 100
    os.utime(RunFolder(tmp_path).status, (past, past))
    assert progress(tmp_path, since=time.time() - 10) is None


def test_after_the_last_step_comes_what_final_asks(tmp_path):
    write(tmp_path, "done", [200], final="evaluating")
    assert progress(tmp_path).state == "evaluating"


def test_lines_when_a_job_starts_ends_and_fails(tmp_path):
    console = Console(file=io.StringIO(), width=60)
    folders = {name: tmp_path / name for name in ("one", "two", "three")}
    with Watch(console, "Three runs", folders) as watch:
        write(folders["one"], "running", [1, 2])
        write(folders["two"], "running", [])
        watch._look()
        watch.ended("one", "error: no such maze")
        write(folders["two"], "done", [200])
    lines = console.file.getvalue().splitlines()
    assert lines[:3] == [
        "Three runs", "  started at step 2/200: one", "  started at step 0/200: two"
    ]  # fmt: skip
    assert lines[3:] == [
        "  1/3 FAILED (error: no such maze) at 0.0 min: one",
        "  step 200/200, reward 0.250, mixed 0.500: two",
        "  2/3 done at 0.0 min: two",
    ]


def test_a_terminal_shows_the_steps_of_running_jobs_in_80_columns(tmp_path):
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    folders = {"sera seqnorm seed=1": tmp_path / "a", "maxrl seqnorm seed=1": tmp_path / "b"}
    with Watch(console, "Two runs", folders) as watch:
        write(tmp_path / "a", "running", [30])
        watch._look()
        write(tmp_path / "a", "running", [30, 60])
        watch._look()
        shown = Console(file=io.StringIO(), width=80)
        shown.print(watch.table())
    row = next(line for line in shown.file.getvalue().splitlines() if "seed=1" in line)
    assert row.split()[:6] == ["sera", "seqnorm", "seed=1", "running", "60/200", "0.250"]
    assert row.split()[-1] in ("s", "min")
    assert "0 ended, 1 waiting" in shown.file.getvalue()
    assert "60/200" in console.file.getvalue()
