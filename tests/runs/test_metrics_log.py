import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from waterline.runs import MetricsLog, read_metrics


def steps(path):
    return [row["step"] for row in read_metrics(path)]


def test_rows_can_be_read_as_soon_as_they_are_appended(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.append({"step": 0, "reward/mean": 0.25, "n": np.int64(3), "kappa": np.float64(0.5)})
    assert read_metrics(log.path) == [{"step": 0, "reward/mean": 0.25, "n": 3, "kappa": 0.5}]
    log.append({"step": 5, "loss": float("nan"), "gap": float("inf")})
    log.sync()
    assert read_metrics(log.path)[1] == {"step": 5, "loss": None, "gap": None}
    assert all(json.loads(line) for line in log.path.read_text().splitlines())


def test_floats_come_back_bit_for_bit(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    values = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    log.append({"step": 0} | {str(i): value for i, value in enumerate(values)})
    assert list(read_metrics(log.path)[0].values())[1:] == values.tolist()


@pytest.mark.parametrize("row", [{}, {"step": "1"}, {"step": 1.0}, {"step": True}])
def test_a_row_needs_a_step(tmp_path, row):
    with pytest.raises(ValueError, match="integer 'step'"):
        MetricsLog(tmp_path / "metrics.jsonl").append(row)


def test_a_step_is_logged_once(tmp_path):
    path = tmp_path / "metrics.jsonl"
    MetricsLog(path).append({"step": 3})
    log = MetricsLog(path)
    for step in (2, 3):
        with pytest.raises(ValueError, match="already holds step 3"):
            log.append({"step": step})
    assert steps(path) == [3]


def test_resume_moves_the_rows_beyond_the_checkpoint(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path)
    for step in range(6):
        log.append({"step": step, "try": 0})
    assert log.truncate_after(3) == 2
    log.append({"step": 4, "try": 1})
    assert log.truncate_after(3) == 1
    log.append({"step": 4, "try": 2})
    assert read_metrics(tmp_path / "metrics.1.jsonl") == [
        {"step": 4, "try": 0},
        {"step": 5, "try": 0},
    ]
    assert read_metrics(tmp_path / "metrics.2.jsonl") == [{"step": 4, "try": 1}]
    assert read_metrics(path)[3:] == [{"step": 3, "try": 0}, {"step": 4, "try": 2}]


def test_nothing_beyond_the_checkpoint_moves_nothing(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    assert log.truncate_after(10) == 0
    log.append({"step": 0})
    assert log.truncate_after(0) == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_kill_between_the_two_writes_does_not_set_rows_aside_twice(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path)
    for step in range(4):
        log.append({"step": step})
    before = path.read_bytes()
    log.truncate_after(1)
    path.write_bytes(before)
    log = MetricsLog(path)
    log.truncate_after(1)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "metrics.1.jsonl",
        "metrics.jsonl",
    ]
    assert steps(path) == [0, 1]


@pytest.mark.parametrize("rest", [b'{"step": 2, "lo', b"{", b'{"step": 2}', b"\xe2\x82"])
def test_a_half_written_last_line_is_dropped(tmp_path, rest):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 0}\n{"step": 1}\n' + rest)
    assert steps(path) == [0, 1]
    log = MetricsLog(path)
    log.append({"step": 2})
    assert steps(path) == [0, 1, 2]


def test_a_broken_line_in_the_middle_is_an_error(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 0}\n[1]\n{"step": 2}\n')
    with pytest.raises(ValueError, match=r"Line 2 of .*metrics\.jsonl is not a JSON object"):
        MetricsLog(path)


def test_a_missing_log_has_no_rows(tmp_path):
    assert read_metrics(tmp_path / "metrics.jsonl") == []


WRITER = """
import sys
from waterline.runs import MetricsLog
log = MetricsLog(sys.argv[1])
step = -1 if log.last_step is None else log.last_step
print("ready", flush=True)
while True:
    step += 1
    log.append({"step": step, "padding": "x" * (step * 7919 % 20_000)})
"""


def test_a_killed_writer_leaves_every_step_once_and_in_order(tmp_path):
    path, chance = tmp_path / "metrics.jsonl", random.Random(1)
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    for _ in range(8):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, env=environment
        )
        writer.stdout.readline()
        time.sleep(0.01 + chance.random() * 0.03)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        found = steps(path)
        assert found == list(range(len(found)))
        # A kill seldom cuts a line, so one is cut here where the disk would have.
        if found:
            os.truncate(path, path.stat().st_size - chance.randrange(1, 5))
    assert len(steps(path)) > 8
