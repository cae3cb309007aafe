"""Checkpoints are streamed to the disk: the old file or the new one, whenever a writer dies."""

import errno
import io
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from training.tiny import ROOT
from waterline.runs import BadInput, remove_partial_files
from waterline.training.checkpoints import Checkpoints, load_checkpoint, load_weights

OLD = {"done": 3, "policy": {"w": torch.arange(5.0)}}
BIG = 4_000_000  # elements, many times what a file buffers; 16 MB a tensor


def new():
    return {"done": 4, "policy": {"w": torch.ones(BIG), "b": torch.zeros(BIG)}}


def same(found, expected):
    return found["done"] == expected["done"] and all(
        torch.equal(found["policy"][name], tensor) for name, tensor in expected["policy"].items()
    )


@pytest.fixture
def checkpoints(tmp_path):
    kept = Checkpoints(tmp_path / "checkpoints")
    kept.save(kept.last, OLD)
    return kept


# Saves a state whose second tensor kills the process while the file is being written.
KILLED = """
import os, signal, sys
import torch
from pathlib import Path
from waterline.training.checkpoints import Checkpoints

real = torch._C.PyTorchFileWriter.write_record

class Writer(torch._C.PyTorchFileWriter):
    written = 0

    def write_record(self, *args):
        if args[0].startswith("data/"):
            Writer.written += 1
            if Writer.written == 2:
                partial = list(Path(sys.argv[1]).glob(".*.partial"))
                print([p.stat().st_size for p in partial], flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *args)

torch._C.PyTorchFileWriter = Writer
kept = Checkpoints(sys.argv[1])
big = int(sys.argv[2])
kept.save(kept.last, {"done": 4, "policy": {"w": torch.ones(big), "b": torch.zeros(big)}})
"""


def test_a_kill_in_the_middle_leaves_the_old_file(checkpoints):
    command = [sys.executable, "-c", KILLED, str(checkpoints.folder), str(BIG)]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, text=True, capture_output=True, env=env, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (size,) = json.loads(done.stdout)
    assert size >= 4 * BIG * 0.9, "half of it is on the disk by then, not in memory"
    assert same(checkpoints.resume_state(), OLD)
    assert [path.name for path in checkpoints.folder.glob("*.pt")] == ["last.pt"]
    assert remove_partial_files(checkpoints.folder) == 1
    checkpoints.save(checkpoints.last, new())
    assert same(checkpoints.resume_state(), new())


def test_a_writer_that_fails_in_the_middle_leaves_the_old_file(checkpoints):
    class Fails:
        def __reduce__(self):
            raise MemoryError("no more")

    with pytest.raises(MemoryError):
        checkpoints.save(checkpoints.last, new() | {"rng": Fails()})
    assert same(checkpoints.resume_state(), OLD)
    assert [path.name for path in checkpoints.folder.iterdir()] == ["last.pt"]


def test_no_copy_of_a_checkpoint_is_made_in_memory(checkpoints, monkeypatch):
    """What torch writes goes into the file as it comes, not into a buffer first."""
    written, save = [], torch.save

    def spy(state, file):
        written.append(Path(file.name))
        save(state, file)

    monkeypatch.setattr(torch, "save", spy)
    checkpoints.save(checkpoints.last, new())
    (path,) = written
    assert path.parent == checkpoints.folder
    assert path.name.startswith(".last.pt.")
    assert path.name.endswith(".partial")
    assert same(checkpoints.resume_state(), new())


def test_kept_checkpoints_are_found_by_their_step(checkpoints):
    for step in (12, 0, 4):
        checkpoints.save(checkpoints.at(step), OLD)
    (checkpoints.folder / "step-x.pt").touch()
    assert checkpoints.kept() == [0, 4, 12]
    assert checkpoints.require(4) == checkpoints.require("4") == checkpoints.at(4)
    for missing in ("final", 5):
        with pytest.raises(BadInput, match=rf"no checkpoint '{missing}'.*\(0, 4, 12\)"):
            checkpoints.require(missing)
    checkpoints.save(checkpoints.final, OLD)
    assert checkpoints.require("final") == checkpoints.final


def test_a_run_without_a_checkpoint_has_nothing_to_resume_from(tmp_path):
    assert Checkpoints(tmp_path).resume_state() is None
    assert Checkpoints(tmp_path).kept() == []


WHOLE = {"done": 3, "policy": {"weight": torch.ones(2, 2), "bias": torch.ones(2)}}


def stored(state, **options):
    sink = io.BytesIO()
    torch.save(state, sink, **options)
    return sink.getvalue()


class Runs:
    """Unpickled without care, it would run a command."""

    def __reduce__(self):
        return os.system, ("touch was-run",)


FOREIGN = {
    "text": (b"hello, this is text\n", "cut short, or no checkpoint"),
    "yaml": (b"a: 1\n", "cut short, or no checkpoint"),
    "letters": ("Größe".encode(), "cut short, or no checkpoint"),
    "page": (b"<html>not found</html>", "cut short, or no checkpoint"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\n", "cut short, or no checkpoint"),
    "zeros": (bytes(5000), "cut short, or no checkpoint"),
    "empty": (b"", "is empty"),
    "pickle": (pickle.dumps(Path("x")), "cut short, or no checkpoint"),
    "object": (stored(torch.nn.Linear(2, 2)), "cut short, or no checkpoint"),
    "command": (stored({"done": 0, "policy": Runs()}), "cut short, or no checkpoint"),
    "list": (stored([1, 2]), "holds no policy"),
    "state": (stored(WHOLE["policy"]), "holds no policy"),
    "lightning": (stored({"state_dict": WHOLE["policy"], "epoch": 1}), "holds no policy"),
    "nothing": (stored({"policy": None}), "holds no policy"),
    "numbered": (stored({"policy": {1: torch.ones(1)}}), "weights without names"),
    "size": (stored({"policy": {"weight": torch.ones(3, 2), "bias": torch.ones(3)}}), "not fit"),
    "keys": (stored({"policy": {"w": torch.ones(2, 2)}}), "not fit"),
    "numbers": (stored({"policy": {"weight": 1, "bias": 2}}), "not fit"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_checkpoint_of_this_network_is_a_sentence(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    content, said = FOREIGN[name]
    file = tmp_path / "base.pt"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=rf"base\.pt.*{said}.*base\.path=") as caught:
        load_weights(torch.nn.Linear(2, 2), file)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize("new", [True, False])
def test_a_checkpoint_cut_at_any_length_is_a_sentence(tmp_path, new):
    whole = stored(WHOLE, _use_new_zipfile_serialization=new)
    file = tmp_path / "base.pt"
    lengths = {*range(0, len(whole), 1 + len(whole) // 60), *range(len(whole) - 25, len(whole))}
    # The older format needs not all of its end.
    for length in lengths if new else [n for n in lengths if n < len(whole) // 2]:
        file.write_bytes(whole[:length])
        with pytest.raises(BadInput, match=r"base\.pt.*base\.path="):
            load_checkpoint(file)
    file.write_bytes(whole)
    assert same(load_checkpoint(file), WHOLE)


def test_paths_that_are_no_files_are_sentences(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for name, said in [
        ("none.pt", "is missing"), (".", "Is a directory"), ("loop", "symbolic links"),
        ("x" * 300, "too long"), ("none/base.pt", "is missing"),
    ]:  # fmt: skip
        with pytest.raises(BadInput, match=said):
            load_checkpoint(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", stored([])])
def test_a_run_says_what_to_do_about_its_own_state(checkpoints, content):
    checkpoints.last.write_bytes(content)
    with pytest.raises(BadInput, match=r"last\.pt.*move it away.*starts afresh"):
        checkpoints.resume_state()


def test_a_disk_that_fills_up_is_an_error_of_the_file(checkpoints, monkeypatch):
    """Torch's writer reports some of them as errors of its own."""

    class Full(io.BytesIO):
        def write(self, data):
            if self.tell() + len(data) > 2000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    monkeypatch.setattr(
        "waterline.training.checkpoints.atomic_write", lambda path, write: write(Full())
    )
    for size in range(1, 600, 60):
        with pytest.raises(OSError, match="No space left"):
            checkpoints.save(checkpoints.last, {"a": torch.ones(size), "b": torch.ones(600)})
