import re
import shutil

import pandas as pd
import pytest

from waterline.reporting import finished, load_runs


def test_a_run_is_read_from_its_own_files(make_run, tmp_path):
    make_run("sera", 2, normalisation="seqnorm")
    (run,) = load_runs(tmp_path / "results", "maze-laptop")
    assert (run.method, run.seed, run.normalisation, run.settings, run.status) == (
        "sera",
        2,
        "seqnorm",
        "n0-16",
        "done",
    )
    assert run.setting("allocation.n_max") == 64
    assert run.setting("allocation.absent", "none") == "none"
    assert list(run.metrics.step) == list(range(1, 61))
    assert run.metrics["grad/norm"].isna().sum() == 1
    assert run.last_step("test") == 60
    assert list(run.answers("test").c) == [0, 4, 8, 16]
    assert run.document("provenance")["command"].startswith("python")


def test_depth_and_hidden_folders_do_not_matter(make_run, tmp_path):
    path = make_run("sera", 0)
    deeper = path.parent / "again" / "deeper"
    deeper.parent.mkdir()
    path.rename(deeper)
    hidden = deeper / ".hydra"
    hidden.mkdir()
    (hidden / "config.yaml").write_text("seed: 3\n")
    assert [run.path for run in load_runs(tmp_path / "results", "maze-laptop")] == [deeper]


def test_what_is_no_run_is_left_out_with_one_note(make_run, tmp_path):
    path = make_run("sera", 0)
    experiment = tmp_path / "results" / "maze-laptop"
    strays = {
        path / "wandb" / "offline-run-1" / "files": "wandb_version: 1\nseed:\n  value: 0\n",
        path / "old" / "seed-0": "seed: 0\n",
        experiment / "sera" / "n0-16" / "again": "method: sera\n",
        experiment / "wandb" / "latest-run" / "files": "",
        experiment / "sera" / "n0-16" / "seed-7": "a: [broken\n",
        experiment: "seed: 0\n",
    }
    for folder, text in strays.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(text)
    notes = []
    runs = load_runs(tmp_path / "results", "maze-laptop", notes.append)
    assert [run.path for run in runs] == [path]
    assert notes == [
        "Left out, not a run: ., sera/n0-16/again, sera/n0-16/seed-0/old/seed-0, "
        "sera/n0-16/seed-0/wandb/offline-run-1/files, sera/n0-16/seed-7, wandb/latest-run/files."
    ]
    with pytest.warns(UserWarning, match="Left out, not a run"):
        load_runs(tmp_path / "results", "maze-laptop")


def test_a_folder_with_nothing_but_strays_holds_no_run(tmp_path):
    folder = tmp_path / "maze-laptop" / "wandb" / "files"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("seed: {value: 3}\n")
    with pytest.raises(ValueError, match="holds no run"):
        load_runs(tmp_path, "maze-laptop")


def test_allocation_parts_are_read_in_order_of_steps(make_run, tmp_path):
    path = make_run()
    (path / "allocation").mkdir()
    for first in (100, 2):
        frame = pd.DataFrame({"step": [first], "prompt": [1], "p_hat": [0.5], "n": [4]})
        frame.to_parquet(path / "allocation" / f"{first}-{first}.parquet")
    (run,) = load_runs(tmp_path / "results", "maze-laptop")
    assert list(run.allocation.step) == [2, 100]


def test_unfinished_runs_are_named(make_run, tmp_path):
    make_run("sera", 0)
    make_run("sera", 1, state="running")
    make_run("maxrl", 0, state=None)
    done, notes = finished(load_runs(tmp_path / "results", "maze-laptop"))
    assert [(run.method, run.seed) for run in done] == [("sera", 0)]
    assert notes == [
        "Left out, not finished: maxrl/n0-16/seed-0 (unknown), sera/n0-16/seed-1 (running)."
    ]


def test_a_base_folder_with_nothing_but_its_evaluation_counts(make_run, tmp_path):
    path = make_run("sera", 0)
    base = tmp_path / "results" / "maze-laptop" / "base" / "seed-4" / "eval"
    base.mkdir(parents=True)
    (path / "eval" / "counts.parquet").rename(base / "counts.parquet")
    done, notes = finished(load_runs(tmp_path / "results", "maze-laptop"))
    assert {(run.method, run.seed) for run in done} == {("base", 4), ("sera", 0)}
    assert not notes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: pd.concat([t, t]), "two rows for one step, split, prompt"),
        (lambda t: t.assign(c=t.n + 1), "rows with c < 0 or c > n: evaluate this run again"),
        (lambda t: t.drop(columns="split"), "no column split"),
    ],
)
def test_broken_counts_are_refused(make_run, tmp_path, change, words):
    file = make_run() / "eval" / "counts.parquet"
    change(pd.read_parquet(file)).to_parquet(file)
    (run,) = load_runs(tmp_path / "results", "maze-laptop")
    with pytest.raises(ValueError, match=words):
        _ = run.counts


def test_no_run_at_all_says_how_to_get_one(tmp_path):
    with pytest.raises(ValueError, match="experiment=maze/laptop method=sera"):
        load_runs(tmp_path, "maze-laptop")


def _broken(name, content=b""):
    def change(path):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(content)

    return change


def _cut(name):
    return lambda path: (path / name).write_bytes((path / name).read_bytes()[:50])


# What is done to a second run, and how it is named.
DAMAGED = {
    "no status": (lambda path: (path / "status.json").write_bytes(b""), None),
    "config empty": (_broken("config.yaml"), "not a run: sera/n0-16/seed-1."),
    "config binary": (_broken("config.yaml", b"\xff\xfe\x00"), "not a run: sera/n0-16/seed-1."),
    "counts cut": (_cut("eval/counts.parquet"), "not readable: sera/n0-16/seed-1/eval/counts"),
    "counts empty": (_broken("eval/counts.parquet"), "not readable: sera/n0-16/seed-1/eval"),
    "allocation": (_broken("allocation/1-2.parquet", b"PAR1"), "not readable: .*/allocation/1-2"),
    "metrics": (_broken("metrics.jsonl", b"{\n{}\n"), "not readable: .*/seed-1/metrics.jsonl"),
    "renamed": (lambda path: path.rename(path.with_name("seed-1.bak")), None),
    "provenance": (_broken("provenance.json", b"{"), None),
    "moved": (
        lambda path: _broken("config.yaml", b"experiment: maze-demo\nmethod: sera\nseed: 1\n")(
            path
        ),
        "of another experiment: sera/n0-16/seed-1.",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_run_is_noted_and_the_others_are_read(make_run, tmp_path, name):
    change, said = DAMAGED[name]
    path = make_run("sera", 0)
    change(make_run("sera", 1))
    notes = []
    runs, unfinished = finished(load_runs(tmp_path / "results", "maze-laptop", notes.append))
    assert runs[0].path == path
    assert len(notes) == (said is not None)
    if said:
        assert re.search(f"^Left out, {said}", notes[0])
        assert [run.path for run in runs] == [path]
    if name == "no status":
        assert unfinished == ["Left out, not finished: sera/n0-16/seed-1 (unknown)."]


@pytest.mark.parametrize("copy", ["seed-0 (copy)", "seed-0.bak", "seed-00", "old/seed-0", "Seed-0"])
def test_a_copy_of_a_run_counts_once(make_run, tmp_path, copy):
    path = make_run("sera", 0)
    shutil.copytree(path, path.parent / copy)
    notes = []
    assert [r.path for r in load_runs(tmp_path / "results", "maze-laptop", notes.append)] == [path]
    name = f"sera/n0-16/{copy}"
    assert notes == [f"Left out, copies: {name} (of sera/n0-16/seed-0)."]


def test_strays_of_any_name_do_no_harm(make_run, tmp_path):
    path = make_run("sera", 0)
    experiment = tmp_path / "results" / "maze-laptop"
    for name in (".DS_Store", "notes.txt", "sera/notes.txt", "seed-4", "sera/n0-16/seed-5"):
        (experiment / name).write_text("")
    for name in (".ipynb_checkpoints", "sera/n0-16/seed-3", "sera/n0-16/seed-3 x", "a/b/c"):
        (experiment / name).mkdir(parents=True)
    (experiment / ".ipynb_checkpoints" / "config.yaml").write_text("seed: 0\n")
    (experiment / "loop").symlink_to(experiment)
    (experiment / "sera" / "gone").symlink_to("nowhere")
    (experiment / "sera" / "seed-8").symlink_to("seed-8")
    (experiment / "config.yaml").symlink_to("nowhere")
    notes = []
    assert [r.path for r in load_runs(tmp_path / "results", "maze-laptop", notes.append)] == [path]
    assert notes == ["Left out, not a run: sera/n0-16/seed-3, sera/n0-16/seed-3 x."]


def test_a_renamed_experiment_is_read(make_run, tmp_path):
    make_run("sera", 0)
    (tmp_path / "results" / "maze-laptop").rename(tmp_path / "results" / "old")
    assert len(load_runs(tmp_path / "results", "old")) == 1
