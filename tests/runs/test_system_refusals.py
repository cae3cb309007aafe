"""What the system refuses is one sentence; reading needs no permission to write."""

import errno
import os

import pytest

from waterline.runs import RunFolder, sentence_errors
from waterline.runs import lock as lock_module


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: (folder / "file" / "below").mkdir(),
        lambda folder: open(folder / "missing" / "file", "w"),  # noqa: SIM115
        lambda folder: (folder / "file").mkdir(),
    ],
)
def test_a_refused_file_is_one_sentence(tmp_path, capsys, make):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as caught, sentence_errors():
        make(tmp_path)
    assert caught.value.code == 1
    said = capsys.readouterr().err
    assert str(tmp_path) in said
    assert said.count("\n") == 1
    assert said.startswith("error: ")


def test_an_error_without_a_file_keeps_its_traceback():
    with pytest.raises(OSError, match="own"), sentence_errors():
        raise OSError("own fault")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_folder_that_nobody_may_write_can_be_read(tmp_path, monkeypatch, number):
    def refuse(path, *args):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(lock_module.os, "open", refuse)
    with RunFolder(tmp_path) as folder:
        assert folder.state() is None


def test_a_full_disk_is_no_reason_to_go_on_without_a_lock(tmp_path, monkeypatch):
    def refuse(path, *args):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(lock_module.os, "open", refuse)
    with pytest.raises(OSError, match="No space"), RunFolder(tmp_path):
        pass
