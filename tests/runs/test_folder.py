import errno
import json
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from waterline.runs import BadInput, FolderBusy, FolderLock, RunFolder, State


def test_the_path_of_a_run(tmp_path):
    folder = RunFolder.of(tmp_path, "maze-laptop", "sera", "n0-16_nmax-64", seed=3)
    assert folder.root == tmp_path / "maze-laptop" / "sera" / "n0-16_nmax-64" / "seed-3"


@pytest.mark.parametrize("name", ["", "..", "a b", "a=b", "a,b", "a/b", "ä"])
def test_names_that_cannot_name_a_folder_are_refused(tmp_path, name):
    with pytest.raises(BadInput, match="cannot name a folder"):
        RunFolder.of(tmp_path, "maze-laptop", name, "n0-16", seed=0)


def test_start_and_restart_are_recorded(tmp_path):
    with RunFolder(tmp_path / "seed-0") as folder:
        assert folder.state() is None
        assert folder.record_start("n0: 16\n", "abc") == 0
        assert folder.state() is State.running
        first = json.loads(folder.provenance.read_text())
        assert folder.record_start("n0: 16\n", "abc") == 1
        record = json.loads(folder.provenance.read_text())
        folder.set_state("done", step=300)
    assert folder.config.read_text() == "n0: 16\n"
    assert {"identity", "time", "command", "git", "versions", "hardware"} <= set(first)
    assert len(record.pop("restarts")) == 1
    assert record | {"restarts": []} == first
    assert json.loads(folder.status.read_text())["step"] == 300
    assert folder.state() is State.done


def test_a_folder_of_other_settings_is_not_continued(tmp_path):
    with RunFolder(tmp_path) as folder:
        folder.record_start("n0: 16\n", "abc")
        with pytest.raises(BadInput, match="other settings"):
            folder.record_start("n0: 8\n", "def")
    assert folder.config.read_text() == "n0: 16\n"


def test_an_unknown_state_is_refused(tmp_path):
    with pytest.raises(ValueError, match="finished"):
        RunFolder(tmp_path).set_state("finished")


def test_the_log_is_appended_to(tmp_path):
    folder, logger = RunFolder(tmp_path), logging.getLogger("waterline.test")
    for message in ("first", "second"):
        handler = folder.log_handler()
        logger.addHandler(handler)
        logger.warning(message)
        logger.removeHandler(handler)
        handler.close()
    lines = folder.log.read_text().splitlines()
    assert [line.split(": ")[1] for line in lines] == ["first", "second"]


def test_entering_clears_partial_files(tmp_path):
    (tmp_path / ".status.json.00000000.partial").write_text("{")
    with RunFolder(tmp_path):
        assert [entry.name for entry in tmp_path.iterdir()] == [".lock"]


def test_two_writers_are_refused_until_the_first_leaves(tmp_path):
    refused = pytest.raises(BadInput, match=f"Process {os.getpid()} is already writing in")
    with RunFolder(tmp_path), refused, RunFolder(tmp_path):
        pass
    with RunFolder(tmp_path):
        pass


def test_acquiring_and_releasing_twice_is_harmless(tmp_path):
    lock = FolderLock(tmp_path)
    lock.acquire()
    lock.acquire()
    lock.release()
    lock.release()
    FolderLock(tmp_path).acquire()


HOLDER = """
import os, sys, time
from pathlib import Path
from waterline.runs import RunFolder
with RunFolder(sys.argv[1]):
    if os.fork() == 0:  # a data-loader worker that outlives its parent
        Path(sys.argv[2]).write_text(str(os.getpid()))
        time.sleep(60)
    print("locked", flush=True)
    time.sleep(60)
"""


def test_a_killed_owner_releases_the_lock_even_if_its_child_lives_on(tmp_path):
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    child_file = tmp_path / "child"
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path / "run", child_file],
        stdout=subprocess.PIPE,
        env=environment,
    )
    owner.stdout.readline()
    deadline = time.monotonic() + 20
    while not (child_file.exists() and child_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    child = int(child_file.read_text())
    try:
        with pytest.raises(BadInput, match=f"Process {owner.pid} "):
            FolderLock(tmp_path / "run").acquire()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        os.kill(child, 0)
        with RunFolder(tmp_path / "run"):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        owner.stdout.close()


def _try_lock(path, answers):
    try:
        FolderLock(path).acquire()
        answers.put("locked")
    except BadInput:
        answers.put("refused")


def test_a_forked_worker_does_not_give_the_lock_away(tmp_path):
    context = multiprocessing.get_context("fork")
    lock = FolderLock(tmp_path)
    lock.acquire()
    answers = context.Queue()
    worker = context.Process(target=_try_lock, args=(tmp_path, answers))
    worker.start()
    assert answers.get(timeout=20) == "refused"
    worker.join()
    with pytest.raises(BadInput):
        FolderLock(tmp_path).acquire()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
@pytest.mark.parametrize("locked_before", [True, False])
def test_a_folder_that_cannot_be_written_can_be_entered(
    tmp_path, monkeypatch, number, locked_before
):
    folder = RunFolder(tmp_path / "run")
    folder.root.mkdir()
    if locked_before:
        with folder:
            pass
    real = os.open

    def read_only(path, flags, *rest, **more):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", read_only)
    with folder:
        if locked_before:
            with pytest.raises(FolderBusy):
                RunFolder(folder.root).__enter__()
    monkeypatch.undo()
    with RunFolder(folder.root):
        pass
