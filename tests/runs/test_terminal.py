"""Output whose reader is gone, letters that it lacks, files that cannot be written."""

import errno
import io
import os
import subprocess
import sys

import pytest

from waterline.runs import BadInput, atomic_write, sentence_errors
from waterline.runs.terminal import file_fault, steady_streams

# Prints more than a buffer and a pipe hold, then writes a file and prints again.
LOUD = """
import logging, sys
from waterline.runs import sentence_errors
with sentence_errors():
    logging.basicConfig(stream=sys.stdout)
    for i in range(6_000):
        print("−2.1 × κ")
        logging.error("Größe")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("whole −")
    print("end", flush=True)
"""


def loud(tmp_path, shell, **environment):
    """Runs ``LOUD`` in a shell; gives the status of python, the end of stdout, and stderr."""
    file = tmp_path / "table"
    (tmp_path / "loud.py").write_text(LOUD, encoding="utf-8")
    command = f'{sys.executable} {tmp_path / "loud.py"} {file} {shell}; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, check=False,
        env=os.environ | {"PYTHONPATH": ":".join(sys.path)} | environment,
    )  # fmt: skip
    assert file.read_text(encoding="utf-8") == "whole −", "nothing is printed into it"
    *out, status = done.stdout.decode(errors="replace").strip().splitlines()
    return int(status), out[-1:], done.stderr.decode(errors="replace")


@pytest.mark.parametrize("shell", ["| head -1", "| true", ">&-", ">&- <&-", "2>&-", ">/dev/null"])
def test_a_command_ends_well_whoever_reads_it(tmp_path, shell):
    status, _, err = loud(tmp_path, shell)
    assert status == 0
    assert "Traceback" not in err
    assert "Exception" not in err
    assert "rror" not in err.replace("ERROR:root:Größe", "")


def test_a_full_output_is_mentioned_once(tmp_path):
    status, _, err = loud(tmp_path, ">/dev/full")
    assert status == 0
    assert err.count("stdout fails") == 1
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"PYTHONIOENCODING": "ascii"}, "-2.1 x ?"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "-2.1 x ?"),
        ({"PYTHONIOENCODING": "latin-1"}, "-2.1 � ?"),
        ({"PYTHONIOENCODING": "ascii:strict"}, "-2.1 x ?"),
    ],
)
def test_letters_that_a_terminal_lacks_are_replaced(tmp_path, environment, shown):
    status, out, err = loud(tmp_path, "| grep -a 2.1 | tail -1", **environment)
    assert (status, out, err) == (0, [shown], "")


def test_the_streams_of_the_process_are_made_steady_once(monkeypatch):
    for name in ("stdout", "stderr"):
        stream = io.TextIOWrapper(io.BytesIO(), "ascii")
        monkeypatch.setattr(sys, name, stream)
        monkeypatch.setattr(sys, f"__{name}__", stream)
    steady_streams()
    first = sys.stdout
    steady_streams()
    assert sys.stdout is first
    print("…", flush=True)
    assert first.buffer.getvalue() == b"...\n"
    other = io.StringIO()
    monkeypatch.setattr(sys, "stdout", other)
    steady_streams()
    assert sys.stdout is other, "a notebook's own is left alone"


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (errno.EROFS, 2), (errno.EACCES, 2), (errno.EPERM, 2), (errno.ENOTDIR, 2),
        (errno.EEXIST, 2), (errno.ELOOP, 2), (errno.ENAMETOOLONG, 2), (errno.ENOENT, 2),
        (errno.ENOSPC, 1), (errno.EDQUOT, 1), (errno.EIO, 1),
    ],
)  # fmt: skip
def test_an_error_of_a_file_is_a_sentence(number, status, capsys):
    with pytest.raises(SystemExit) as end, sentence_errors():
        raise OSError(number, os.strerror(number), "results/config.yaml")
    assert end.value.code == status
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: results/config.yaml: {os.strerror(number)}: ")


def test_other_errors_keep_their_traceback():
    assert file_fault(ConnectionResetError(errno.ECONNRESET, "reset")) is None
    with pytest.raises(TimeoutError), sentence_errors():
        raise TimeoutError("no answer")


def test_errors_of_writing_name_the_file_that_was_meant(tmp_path):
    (tmp_path / "file").touch()
    for path in ("file/status.json", "file/eval/counts.parquet"):
        with pytest.raises((NotADirectoryError, FileExistsError)) as caught:
            atomic_write(tmp_path / path, "{}")
        assert "partial" not in str(caught.value)

    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space") as caught:
        atomic_write(tmp_path / "last.pt", full)
    assert caught.value.filename == str(tmp_path / "last.pt")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_bad_input_still_ends_with_two(capsys):
    with pytest.raises(SystemExit) as end, sentence_errors():
        raise BadInput("No.")
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: No.\n"
