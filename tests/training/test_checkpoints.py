"""Checkpoints are streamed to the disk: the old file or the new one, whenever a writer dies."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from training.tiny import ROOT
from waterline.runs import BadInput, remove_partial_files
from waterline.training.checkpoints import Checkpoints, load_checkpoint

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


def test_files_that_are_no_checkpoints_are_sentences(tmp_path):
    (tmp_path / "half.pt").write_bytes(b"PK\x03\x04 and no more")
    torch.save([1, 2], tmp_path / "list.pt")
    for name, said in [
        ("none.pt", "is missing"),
        ("half.pt", "no readable checkpoint"),
        ("list.pt", "holds no policy"),
    ]:
        with pytest.raises(BadInput, match=said) as caught:
            load_checkpoint(tmp_path / name)
        assert "\n" not in str(caught.value)
