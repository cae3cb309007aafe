import os
import random
import signal
import subprocess
import sys
import time

import pytest

from waterline.runs import atomic_write, remove_partial_files


def test_bytes_text_and_writers(tmp_path):
    path = tmp_path / "new" / "file"
    atomic_write(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    atomic_write(path, "κ = 1")
    assert path.read_text(encoding="utf-8") == "κ = 1"
    atomic_write(path, lambda file: file.write(b"written"))
    assert path.read_bytes() == b"written"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    atomic_write(path, "old")

    def fail(file):
        file.write(b"half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        atomic_write(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    (tmp_path / "plain").write_text("")
    atomic_write(tmp_path / "atomic", "")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_partial_files_are_removed_below_the_folder_and_nothing_else(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / ".last.ckpt.0a1b2c3d.partial").write_text("half")
    (tmp_path / "checkpoints" / "last.ckpt").write_text("whole")
    assert remove_partial_files(tmp_path) == 1
    assert [entry.name for entry in (tmp_path / "checkpoints").iterdir()] == ["last.ckpt"]


WRITER = """
import sys
from waterline.runs import atomic_write
path, version = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
while True:
    version += 1
    body = (b"%d " % version) * 20_000
    # In two halves, so that a kill often falls between them.
    atomic_write(path, lambda file: (file.write(body[: len(body) // 2]), file.flush(),
                                     file.write(body[len(body) // 2 :])))
"""


def test_a_file_is_whole_whenever_its_writer_is_killed(tmp_path):
    path, chance, last, cut_off = tmp_path / "state", random.Random(0), 0, 0
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    for _ in range(12):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(last)], stdout=subprocess.PIPE, env=environment
        )
        writer.stdout.readline()
        time.sleep(0.02 + chance.random() * 0.05)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        words = path.read_bytes().split()
        assert len(words) == 20_000
        assert len(set(words)) == 1
        assert int(words[0]) > last
        last = int(words[0])
        cut_off += remove_partial_files(tmp_path)
        assert list(tmp_path.iterdir()) == [path]
    # The kills did fall into writes, so the test has seen what it is about.
    assert cut_off > 0
