"""One file has one record, wherever the command was given, and is found from anywhere."""

import os
from pathlib import Path

import pytest

from waterline.runs import BadInput, identity, paths
from waterline.runs.paths import from_record, from_user, opened, recorded, to_record
from waterline.runs.targets import path_keys


class Reader:
    def __init__(self, path: str | Path | None = None, other: "Path | None" = None, name: str = ""):
        """A piece that reads two files."""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    root = tmp_path / "che ck=out, #1 (ü)"
    (root / "data").mkdir(parents=True)
    (root / "experiments").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(paths, "CHECKOUT", root)
    return root


def config(path, results="results"):
    reader = {"_target_": "runs.test_paths.Reader", "path": path, "other": None, "name": "a/b"}
    return {"task": reader, "base": {"path": None}, "paths": {"results": results}, "list": [reader]}


def test_annotations_say_what_is_a_path():
    assert path_keys(Reader) == {"path", "other"}


@pytest.mark.parametrize(
    ("cwd", "given"),
    [
        (".", "data/x.jsonl"),
        (".", "./data/../data/x.jsonl/"),
        ("experiments", "../data/x.jsonl"),
        ("../elsewhere", "../che ck=out, #1 (ü)/data/x.jsonl"),
        ("data", "x.jsonl"),
    ],
)
def test_a_file_of_the_checkout_is_recorded_from_there(checkout, monkeypatch, cwd, given):
    monkeypatch.chdir(checkout / cwd)
    assert to_record(given) == "data/x.jsonl"
    assert to_record(str(checkout / "data" / "x.jsonl")) == "data/x.jsonl"
    found = from_record("data/x.jsonl")
    assert Path(found).resolve() == checkout / "data" / "x.jsonl"
    assert os.path.isabs(found) == (cwd == "../elsewhere")
    held = recorded(config(given, results="../r"))
    assert held["task"]["path"] == held["list"][0]["path"] == "data/x.jsonl"
    assert held["task"]["name"] == "a/b"
    assert held["base"]["path"] is None
    assert recorded(opened(held)) == held
    monkeypatch.chdir(checkout)
    assert identity(held) == identity(config("data/x.jsonl")) != identity(config("data/y.jsonl"))


def test_a_file_outside_is_recorded_whole_and_a_link_as_what_it_shows(checkout, monkeypatch):
    monkeypatch.chdir(checkout.parent / "elsewhere")
    assert to_record("x") == str(checkout.parent / "elsewhere" / "x")
    assert from_record(to_record("x")) == str(checkout.parent / "elsewhere" / "x")
    Path("link").symlink_to(checkout / "data")
    assert to_record("link/x") == "data/x"


def test_a_home_is_opened_and_what_is_no_path_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "file").write_text("")
    assert from_user("results", "~/res") == f"{tmp_path}/res"
    assert from_user("paths.results", 2024) == "2024"
    assert from_user("base.path", None) is None
    for key, value, said in [
        ("paths.results", "", "paths.results is empty"),
        ("task.path", " ", "task.path is empty"),
        ("paths.results", None, "must be a path"),
        ("results", 1e3, "must be a path"),
        ("run", True, "must be a path"),
        ("root", "~nobody-of-that-name/x", "no such home"),
        ("results", f"{tmp_path}/file", "is a file"),
        ("paths.results", f"{tmp_path}/file/below/it", "is a file"),
    ]:
        with pytest.raises(BadInput, match=said):
            from_user(key, value)
