import errno
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from rich.console import Console

from reporting.image_runs import estimates, write_gradients, write_run
from waterline.reporting import report
from waterline.runs import BadInput
from waterline.tasks.mathematics.sources import DATA_SETS, FIRST_ID, PER_SET

ROOT = Path(__file__).parents[2]


def ask(tmp_path, *overrides, width=100):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose(
            "report",
            [f"root={tmp_path / 'results'}", f"paper={ROOT / 'results' / 'paper'}", *overrides],
        )
    text = StringIO()
    return report(config, Console(file=text, width=width)), text.getvalue()


@pytest.fixture
def runs(make_run):
    def make(**options):
        for name in ("token-mean", "seqnorm"):
            for method in ("maxrl", "sera"):
                make_run(method, normalisation=name, settings=f"n0-16_{name}", **options)

    return make


def test_table_on_the_terminal_and_in_three_files(runs, tmp_path):
    runs()
    written, text = ask(tmp_path, "table=4")
    assert [path.name for path in written] == ["table4.md", "table4.csv", "table4.provenance.json"]
    assert {path.parent for path in written} == {tmp_path / "results" / "maze-laptop"}
    for words in (
        "Token-mean SERA",
        "43.75",
        "questions",
        "runs",
        "within noise",
        "GRPO",
        "about these checkpoints only",
        "1 seed",
    ):
        assert words in text
    assert "paper" not in text.split("Written")[0]
    markdown = written[0].read_text()
    assert "| Token-mean SERA − MaxRL | difference | +0.00 |" in markdown
    assert "| Seqnorm SERA | mean | 43.75 |" in markdown
    assert "| Token-mean SERA | 0 | 60 | 4 × 16 | 30,720 | 614,400 | 100.0% |" in markdown
    tidy = pd.read_csv(written[1])
    assert set(tidy.k) == {1, 2, 4, 8, 16}
    assert set(tidy.table) == {4}
    assert set(tidy.experiment) == {"maze-laptop"}
    record = json.loads(written[2].read_text())
    assert record["report"]["versions"]["python"]
    assert set(record["runs"]) == {
        f"maze-laptop/{method}/n0-16_{name}/seed-0"
        for method in ("maxrl", "sera")
        for name in ("token-mean", "seqnorm")
    }
    run = record["runs"]["maze-laptop/sera/n0-16_seqnorm/seed-0"]
    assert run["seconds"] == 120
    assert run["provenance"]["command"]
    assert run["status"]["state"] == "done"


def test_the_command_prints_what_is_no_run(runs, tmp_path):
    runs()
    stray = tmp_path / "results" / "maze-laptop" / "wandb" / "files"
    stray.mkdir(parents=True)
    (stray / "config.yaml").write_text("seed: {value: 0}\n")
    assert "• Left out, not a run: wandb/files." in ask(tmp_path, "table=4")[1]


def test_paper_scale_shows_the_papers_values_next_to_ours(runs, tmp_path):
    runs(experiment="maze-paper", n=128)
    written, text = ask(tmp_path, "table=4", "scale=paper")
    assert "| Token-mean SERA | mean | 43.75 |" in written[0].read_text()
    assert "|  | paper | 49.98 | 58.19 |" in written[0].read_text()
    assert "55.61" in text
    assert "K = 256, 512, 1024, 2048" in written[0].read_text()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_cell_is_cut_on_any_terminal(runs, tmp_path, width):
    runs()
    _, text = ask(tmp_path, "table=4", width=width)
    assert "…" not in text
    assert "Token-mean SERA − MaxRL" in text
    if width >= 80:
        assert max(map(len, text.split("Written")[0].splitlines())) <= width


def test_ks_settings_and_estimator_can_be_chosen(runs, make_run, tmp_path):
    runs()
    make_run("sera", settings="n0-8")
    written, text = ask(
        tmp_path, "table=4", "ks=[1,4]", "settings=[n0-16_token-mean]", "estimator=bootstrap"
    )
    tidy = pd.read_csv(written[1])
    assert set(tidy.k) == {1, 4}
    assert set(tidy.estimator) == {"bootstrap"}
    assert set(tidy.method) == {"base", "maxrl", "sera"}
    assert "with replacement" in text
    assert set(pd.read_csv(ask(tmp_path, "table=4", "ks=4")[0][1]).k) == {4}


def test_every_table_and_figure_of_image_runs(tmp_path):
    results = tmp_path / "results"
    for method in ("ce", "maxrl", "sera"):
        folder = write_run(results, method, experiment="imagenet-paper")
        if method == "ce":
            write_gradients(folder.root, {("maxrl", 16): (0.1, 0.2)}, {("maxrl", 16): (16, 16)})
    write_run(results, "sera", estimate="pilot", experiment="imagenet-paper", test=False)
    written, text = ask(tmp_path, "table=all", "scale=paper", "ks=[1,1024]")
    assert {path.name for path in written} == {"table2.md", "table2.csv", "table2.provenance.json"}
    assert "No table 3: " in text
    assert "No table gradients: Gradients at shared parameters has no K: leave out ks=." in text
    assert "No table 4: " in text
    assert "Left out, not evaluated on test: SERA, N₀ = 16, pilot, seed 0." in text
    table = written[0].read_text()
    assert "| SERA, N₀ = 16 | mean | 43.75 | 75.00 |" in table
    assert "|  | paper | 12.37 | 17.49 |" in table
    assert "|  | paper | 60.81 | 98.00 |" in table
    assert "| SERA − MaxRL, N₀ = 16 | difference | +0.00 | +0.00 |" in table
    assert "## Differences from Direct CE (points)" in table
    assert "| SERA, N₀ = 16 | 0 | 60 | 4, exact | 3,840 | – | 100.0% |" in table
    assert "Token-mean" not in table
    written, _ = ask(tmp_path, "table=gradients", "scale=paper")
    assert [path.name for path in written] == [
        "gradients.md", "gradients.csv", "gradients.provenance.json",
    ]  # fmt: skip
    assert set(pd.read_csv(written[1]).table) == {"gradients"}
    record = json.loads(written[2].read_text())
    assert set(record["runs"]) == {"imagenet-paper/ce/default/seed-0"}
    written, _ = ask(tmp_path, "figure=2", "scale=paper")
    written += ask(tmp_path, "figure=gradients", "scale=paper")[0]
    assert [path.name for path in written] == [
        "figure2.png", "figure2.pdf", "gradients.png", "gradients.pdf",
    ]  # fmt: skip


def test_a_terminal_shows_few_of_many_k_and_the_files_all(tmp_path):
    for method in ("ce", "maxrl", "sera"):
        write_run(tmp_path / "results", method)
    written, text = ask(tmp_path, "table=2", width=80)
    shown = "Shown: K = 1, K = 8, K = 128, K = 1024; the files have every column."
    assert shown in text
    assert {k for k in range(1025) if f"K = {k} " in text.split("Shown")[0] + " "} <= {
        1, 8, 128, 1024,
    }  # fmt: skip
    ks = [2**i for i in range(11)]
    header = "".join(f" K = {k} |" for k in ks)
    assert written[0].read_text().count(header) == 3
    assert "Shown:" not in written[0].read_text()
    assert list(pd.read_csv(written[1]).k.unique()) == ks
    _, text = ask(tmp_path, "table=2", "ks=[1,2,4,16,64,256,512]")
    assert "Shown: K = 1, K = 4, K = 64, K = 512;" in text
    _, text = ask(tmp_path, "table=2", "ks=[1,2,4,16,64,256]")
    assert "Shown:" not in text


def test_table3_stands_next_to_the_papers(tmp_path):
    rows = estimates([0.0625, 0.0625], [0.5, 0.75])
    folder = {"experiment": "imagenet-paper", "rows": rows}
    write_run(tmp_path / "results", "sera", estimate="history", **folder)
    written, text = ask(tmp_path, "table=3", "scale=paper")
    assert [path.name for path in written] == ["table3.md", "table3.csv", "table3.provenance.json"]
    assert "| Historical estimate | mean | 16 | 0 | 1 | 1 | 0.0625 | 0.6250 |" in (
        written[0].read_text()
    )
    assert "0.8134" in text


def test_all_figures_and_the_runs_they_leave_out(make_run, tmp_path):
    make_run("sera")
    make_run("grpo", state="running")
    written, text = ask(tmp_path, "figure=all")
    assert [path.name for path in written] == [
        f"figure{number}.{kind}" for number in (1, 3, 15, 16) for kind in ("png", "pdf")
    ]
    for path in written:
        assert path.read_bytes()[:4] in (b"\x89PNG", b"%PDF")
        assert path.stat().st_size > 5_000
    assert "figure16.png" in text
    assert "No figure 2: " in text
    assert "Left out, not finished: grpo/n0-16/seed-0 (running)." in text


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            ["table=11"],
            "no table 11: choose from table=1, 2, 3, .*, gradients and figure=1, 2, 3, .*, grad",
        ),
        (["figure=4"], "no figure 4: choose from"),
        ([], "Ask for one table or one figure"),
        (["table=4", "figure=1"], "Ask for one table or one figure"),
        (["table=4", "folder=absent"], "holds no run"),
    ],
)
def test_bad_requests_are_one_sentence(tmp_path, overrides, words):
    with pytest.raises(ValueError, match=words):
        ask(tmp_path, *overrides)


def command(root, *arguments):
    return subprocess.run(
        [sys.executable, "experiments/report.py", f"root={root}", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("table=11", "There is no table 11"),
        ("table=3", "No finished run logged success/mae with a pilot or historical estimate"),
        ("figure=gradients", "No finished cross-entropy run has gradients/cosines.parquet"),
    ],
)
def test_the_command_fails_with_one_line_of_our_own(tmp_path, argument, words):
    write_run(tmp_path, "sera")
    done = command(tmp_path, argument)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {words}")
    assert done.stderr.count("\n") == 1
    assert "instantiat" not in done.stderr


def test_the_command_makes_of_all_what_it_can(tmp_path):
    write_run(tmp_path, "sera")
    done = command(tmp_path, "table=all")
    assert (done.returncode, done.stderr) == (0, "")
    assert "• No table 3: No finished run logged success/mae" in done.stdout
    assert "• No table gradients: No finished cross-entropy run" in done.stdout
    assert (tmp_path / "imagenet-laptop" / "table2.md").exists()
    done = command(tmp_path, "figure=all")
    assert (done.returncode, done.stderr) == (0, "")
    assert "• No figure gradients: No finished cross-entropy run" in done.stdout
    assert (tmp_path / "imagenet-laptop" / "figure2.pdf").exists()
    assert (tmp_path / "maze-laptop" / "figure1.pdf").exists()


def test_what_is_there_already_is_not_written_again(runs, make_run, tmp_path, monkeypatch):
    runs()
    asked = ("table=4",), ("figure=16",)
    written = [path for arguments in asked for path in ask(tmp_path, *arguments)[0]]
    before = [path.stat().st_mtime_ns for path in written]

    def read_only(path, content):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    for module in ("render", "figures.style"):
        module = sys.modules[f"waterline.reporting.{module}"]  # not the function 'style'
        monkeypatch.setattr(module, "atomic_write", read_only)
    for arguments in asked:
        ask(tmp_path, *arguments)
    assert [path.stat().st_mtime_ns for path in written] == before
    written[1].write_text("cut sho", encoding="utf-8")
    with pytest.raises(OSError, match=r"Read-only.*table4\.md"):
        ask(tmp_path, "table=4")
    monkeypatch.undo()
    written = ask(tmp_path, "table=4")[0]
    assert set(pd.read_csv(written[1]).table) == {4}
    make_run("grpo", normalisation="token-mean", settings="n0-16_token-mean")
    assert "grpo" in ask(tmp_path, "table=4")[0][2].read_text(), "made of other runs"


def test_a_table_is_written_before_it_is_printed(runs, tmp_path):
    class Deaf(StringIO):
        def write(self, text):
            raise BrokenPipeError

    runs()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("report", ["table=4", f"root={tmp_path / 'results'}"])
    console = Console(file=Deaf())
    with pytest.raises((BrokenPipeError, SystemExit)):
        report(config, console)
    assert (tmp_path / "results/maze-laptop/table4.provenance.json").exists()


def test_a_table_of_several_data_sets_is_one_for_each(make_run, tmp_path):
    """The ids of prompts say what data set they are of; the paper's numbers stand beside each."""
    sets = list(DATA_SETS)
    for method, p in (("maxrl", (0.25, 0.5)), ("sera", (0.5, 1.0))):
        root = make_run(method, experiment="qwen25_math-paper", p=p, n=512, base=(0.0, 0.25))
        file = root / "eval/counts.parquet"
        counts = pd.read_parquet(file)
        index = counts["prompt"].map({3: sets.index("aime25"), 10: sets.index("math500")})
        first = counts["split"].map(FIRST_ID)
        counts["prompt"] = first + PER_SET * index + counts["prompt"]
        counts.to_parquet(file)
    with pytest.raises(BadInput, match="Table 6 exists at scale=paper alone"):
        ask(tmp_path, "table=6")
    written, text = ask(tmp_path, "table=6", "scale=paper", "ks=[1]")
    tables = {path.stem: path for path in written if path.suffix == ".csv"}
    assert set(tables) == {"table6-aime25", "table6-math500"}
    for name, values in {"aime25": (25, 50), "math500": (50, 100)}.items():
        rows = pd.read_csv(tables[f"table6-{name}"])
        found = rows[rows["method"].isin(["maxrl", "sera"])]
        assert sorted(found["value"].round(6)) == list(values)
    assert "aime-2025" in text
