"""What the README and the pages show: commands run as they stand there, numbers are those of
the committed tables."""

import contextlib
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from waterline.allocation import fidelity
from waterline.evaluation import exact_pass_at_k
from waterline.reporting import load_runs
from waterline.runs.metrics import glossary

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")})
SMALL = (
    "task.size=7 task.sft=64 task.train=32 task.dev=8 task.test=8 supervised.batch=16 "
    "supervised.steps=4 training.batch=8 training.steps=5 evaluation.n=4 evaluation.every=5 "
    "policy.model.hidden_size=16 policy.model.layers=2 policy.model.ffn=32 trainer.threads=1"
)

PUBLISHED = "results/published"
MAZES = f"{PUBLISHED}/maze-laptop/table4.csv"
IMAGES = f"{PUBLISHED}/imagenet-laptop/table2.csv"
LONG = f"{PUBLISHED}/imagenet-laptop-long/table2.csv"
PAPER = {k: f"results/paper/sera-table{k}.csv" for k in (2, 3, 4)}
TOKEN, SEQ, BOTH = "SERA − MaxRL, token-mean", "SERA − MaxRL, seqnorm", ("SERA", "MaxRL")
METHODS = {
    "Base": "base", "CE": "ce", "GRPO": "grpo", "MaxRL": "maxrl", "SERA": "sera",
    "Pilot": "pilot", "History": "history",
}  # fmt: skip
# A column of a page, as the rows of a table name it: the value of its column k, quantity or metric.
COLUMNS = {
    "expected": "cosine_expected", "mean of 64 samples": "cosine_mean",
    "single sample": "cosine_sample", "mean absolute error": "mae", "Pearson r": "pearson_r",
}  # fmt: skip


def text_blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def block_with(language: str, part: str) -> str:
    (found,) = [b for b in text_blocks(language) if part in b]
    return found


def flat(text: str) -> str:
    return " ".join(text.split())


# Numbers ------------------------------------------------------------------------------------------


def number(table: str, label: str, column: str) -> SimpleNamespace:
    """The number of a row like 'SERA − MaxRL, seqnorm' and a column like 'K = 8' of a CSV file.

    It has the value, the ends of its *runs* interval, its size without the sign, and the row.
    """
    frame = pd.read_csv(ROOT / table)
    names, *qualifiers = label.split(", ")
    first, _, second = names.partition(" − ")
    if second and "delta" not in frame:  # the papers print values
        a, b = (number(table, ", ".join([n, *qualifiers]), column) for n in (first, second))
        return SimpleNamespace(value=a.value - b.value, size=abs(a.value - b.value))
    method = METHODS[first.split()[0]]
    found = frame[frame.method == method]
    if "normalisation" in frame and found.normalisation.notna().any():
        wanted = "seqnorm" if "seqnorm" in qualifiers else "token-mean"
        found = found[found.normalisation == wanted]
    for qualifier in qualifiers:
        if qualifier.startswith("N0 = "):
            found = found[found.n0 == int(qualifier[5:])]
    if column.startswith("K = "):
        found = found[found.k == int(column[4:])]
    else:
        name = COLUMNS.get(column, column)
        found = found[found["quantity" if "quantity" in found else "metric"] == name]
    assert len(found) == 1, (table, label, column)
    row = found.iloc[0]
    if second:
        assert row.baseline == METHODS[second]
    value, ends = ("delta", "delta_runs") if second else ("value", "runs")
    keys = (value, f"{ends}_low", f"{ends}_high")
    value, low, high = (float(row.get(key, np.nan)) for key in keys)
    return SimpleNamespace(value=value, size=abs(value), low=low, high=high, row=row)


def shown(pattern: str, *numbers: Any) -> str:
    """The pattern with its numbers in place, with the minus sign of the pages."""
    return re.sub(r"-(?=\d)", "−", pattern.format(*numbers))


def checked_tables(text: str) -> list[tuple[str, str]]:
    """The CSV file and the lines of each table that names its file in a comment."""
    return re.findall(r"<!-- numbers: (\S+) -->\n((?:\|.*\n)+)", text)


def cells_of(lines: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines.splitlines()]


def cell(table: str, label: str, column: str, interval: bool) -> str:
    found = number(table, label, column)
    form = ".1f" if column.startswith("K = ") else ".3f"
    form = f"+{form}" if " − " in label else form
    ends = f" [{{0.low:{form}}}, {{0.high:{form}}}]" if interval else ""
    return shown(f"{{0.value:{form}}}{ends}", found)


@pytest.mark.parametrize("page", ["README.md", "docs/mazes.md", "docs/images.md"])
def test_a_table_shows_the_numbers_of_its_file(page):
    tables = checked_tables((ROOT / page).read_text())
    assert tables
    for table, lines in tables:
        header, _, *rows = cells_of(lines)
        for label, *cells in rows:
            for column, given in zip(header[1:], cells, strict=True):
                # Of a difference the interval is always shown.
                interval = "[" in given or " − " in label
                assert given == cell(table, label, column, interval), (page, label, column)


# Numbers that stand in sentences: the page, the sentence, and its numbers in their order.
SENTENCES: list[tuple[Any, ...]] = [
    ("README.md", "{0.row.budget_rollouts:,.0f} rollouts a run", (MAZES, "SERA", "K = 1")),
    ("README.md", "{0.row.questions:.0f} mazes that no run has seen", (MAZES, "SERA", "K = 1")),
    (
        "docs/mazes.md",
        "{0.value:+.1f} [{0.low:+.1f}, {0.high:+.1f}]",
        (MAZES, TOKEN, "K = 8"),
    ),
    ("docs/mazes.md", "At K = 1 it is {0.size:.1f} points lower", (MAZES, TOKEN, "K = 1")),
    (
        "docs/mazes.md",
        "{0.value:+.1f} at K = 1, {1.value:+.1f} at K = 128, {2.value:+.1f} at K = 2048",
        *((PAPER[4], TOKEN, f"K = {k}") for k in (1, 128, 2048)),
    ),
    ("docs/mazes.md", "under seqnorm ({0.value:+.1f})", (PAPER[4], SEQ, "K = 1")),
    (
        "docs/mazes.md",
        "solves {0.value:.1f}% of the mazes within {0.row.responses:.0f} responses",
        (MAZES, "Base", "K = 256"),
    ),
    ("docs/mazes.md", "paper's base solves {0.value:.1f}%", (PAPER[4], "Base", "K = 256")),
    ("docs/images.md", "{0.row.step:,.0f} steps of 64 images", (IMAGES, "CE", "K = 1")),
    (
        "docs/images.md",
        "three seeds on {0.row.questions:,.0f} test images",
        (IMAGES, "CE", "K = 1"),
    ),
    (
        "docs/images.md",
        "{0.row.gap:+.1f} [{0.row.gap_runs_low:+.1f}, {0.row.gap_runs_high:+.1f}] at K = 32",
        (IMAGES, "SERA, N0 = 64", "K = 32"),
    ),
    (
        "docs/images.md",
        "At K = 1 SERA has {0.value:.1f}% and MaxRL {1.value:.1f}%. At K = 1024 SERA has "
        "{2.value:.1f}%, and MaxRL {3.value:.1f}%",
        *((IMAGES, f"{m}, N0 = 16", f"K = {k}") for k in (1, 1024) for m in BOTH),
    ),
    (
        "docs/images.md",
        "SERA has {0.value:.1f}% at N0 = 16 and K = 1, and MaxRL {1.value:.1f}%",
        *((PAPER[2], f"{m}, N0 = 16", "K = 1") for m in BOTH),
    ),
    (
        "docs/images.md",
        "opposite of ours: {0.value:.2f}% with SERA and {1.value:.2f}% with MaxRL",
        *((PAPER[2], f"{m}, N0 = 16", "K = 1024") for m in BOTH),
    ),
    (
        "docs/images.md",
        "four times the steps** ({0.row.step:,.0f};",
        (LONG, "SERA, N0 = 16", "K = 1"),
    ),
    (
        "docs/images.md",
        "Pass@1 is {0.value:.1f}% with SERA and {1.value:.1f}% with MaxRL, "
        "Pass@1024 is {2.value:.1f}% and {3.value:.1f}%",
        *((LONG, f"{m}, N0 = 16", f"K = {k}") for k in (1, 1024) for m in BOTH),
    ),
    (
        "docs/images.md",
        "the mean of three seeds on {0.row.questions:,.0f} dev images",
        (LONG, "SERA, N0 = 16", "K = 1"),
    ),
    (
        "docs/images.md",
        "at N0 = 128, it is {0.value:.2f} and {1.value:.2f}.",
        *(("results/paper/sera-figure2.csv", m, "grad_cosine_ce_final") for m in BOTH),
    ),
    (
        "docs/images.md",
        "{0.value:.3f} and {1.value:.3f} for the pilot, {2.value:.3f} and {3.value:.3f} for the "
        "history",
        *((PAPER[3], m, c) for m in ("Pilot", "History") for c in ("mae", "pearson_r")),
    ),
    (
        "docs/methods/grpo.md",
        "its Pass@1024 is {0.value:.2f}%, and that of MaxRL {1.value:.2f}%",
        *((PAPER[4], m, "K = 1024") for m in ("GRPO", "MaxRL")),
    ),
]


def sentences() -> list[tuple[str, str]]:
    """Each page of SENTENCES and what must stand in it; κ comes from its own function."""
    kappa = fidelity(np.array([0.01, 0.1, 0.5, 1 / 256]), np.full(4, 16))
    return [
        *((page, shown(text, *(number(*at) for at in where))) for page, text, *where in SENTENCES),
        ("docs/methods/maxrl.md", shown(
            "at $n=16$ it is {0:.2f} for $p=0.01$, {1:.2f} for $p=0.1$ and {2:.2f} for $p=0.5$",
            *kappa)),
        ("docs/images.md", shown(
            "a uniform guess over 256 classes has {0:.1f}%", 100 * exact_pass_at_k(1 / 256, 1024))),
        ("docs/images.md", shown(
            "where chance has {0:.1f}%", 100 * exact_pass_at_k(1 / 1000, 1024))),
        ("docs/images.md", shown("about 1/256, so κ is {3:.2f} at 16 rollouts", *kappa)),
    ]  # fmt: skip


@pytest.mark.parametrize(("page", "text"), sentences())
def test_a_sentence_shows_the_numbers_of_the_tables(page, text):
    assert text in flat((ROOT / page).read_text())


# Who is ahead according to the pages: the K at which an interval of a difference is above 0, and
# those at which it is below.
POWERS = tuple(2**i for i in range(11))
AHEAD = [
    ("README.md", "ahead of MaxRL from K = 8 to K = 128", MAZES, TOKEN, POWERS[3:8], ()),
    ("docs/mazes.md", "Every interval contains 0", MAZES, SEQ, (), ()),
    (
        "docs/images.md",
        "SERA is ahead of MaxRL at every K",
        *(IMAGES, "SERA − MaxRL, N0 = 64", POWERS, ()),
    ),
    (
        "docs/images.md",
        "It is ahead up to K = 16, at K = 32 the difference is within noise, and from K = 64 on "
        "SERA is ahead",
        *(IMAGES, "SERA − MaxRL, N0 = 16", POWERS[6:], POWERS[:5]),
    ),
    (
        "docs/images.md",
        "interval of the difference is above 0 at every K",
        *(LONG, "SERA − MaxRL, N0 = 16", POWERS, ()),
    ),
]


@pytest.mark.parametrize(("page", "text", "table", "label", "ahead", "behind"), AHEAD)
def test_a_claim_rests_on_its_intervals(page, text, table, label, ahead, behind):
    assert text in flat((ROOT / page).read_text())
    of = {k: number(table, label, f"K = {k}") for k in sorted(pd.read_csv(ROOT / table).k.unique())}
    assert tuple(k for k, found in of.items() if found.low > 0) == ahead
    assert tuple(k for k, found in of.items() if found.high < 0) == behind


@pytest.mark.parametrize(
    ("run", "low", "high"), [("sera/n0-64_nmax-256", 0.9, 1), ("maxrl/n0-64", 0, 0.2)]
)
def test_the_cosine_at_the_end_of_own_runs_is_as_the_page_says(run, low, high):
    """The last point of panel d of Figure 2: the mean of five measurements, over seeds."""
    last = []
    for file in (ROOT / PUBLISHED / "imagenet-laptop" / run).glob("*/metrics.jsonl"):
        rows = map(json.loads, file.read_text().splitlines())
        last += [row["grad/cosine_ce"] for row in rows if "grad/cosine_ce" in row][-5:]
    assert len(last) == 15
    assert low < np.mean(last) < high


WITH_RUNS = [
    table
    for table in sorted((ROOT / PUBLISHED).glob("*/*.csv"))
    if any(table.parent.glob("*/*/seed-*/eval"))
]


def test_the_mazes_are_published_with_their_counts():
    assert ROOT / MAZES in WITH_RUNS


@pytest.mark.slow
@pytest.mark.parametrize("table", WITH_RUNS, ids=lambda table: f"{table.parent.name}/{table.name}")
def test_a_published_table_is_that_of_the_published_counts(table, tmp_path):
    shutil.copytree(table.parent, tmp_path / table.parent.name)
    (tmp_path / table.parent.name / table.name).unlink()
    name, folder = table.stem.removeprefix("table"), table.parent.name
    split = pd.read_csv(table).get("split", pd.Series(["test"]))[0]
    where = f"table={name} folder={folder} root={tmp_path} split={split}"
    bash(f"python experiments/report.py {where}", ROOT)
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / folder / table.name), pd.read_csv(table), rtol=1e-5
    )


# Numbers with a decimal point that no table holds: versions, names of papers, sizes of networks.
ELSEWHERE = (
    r"Apache-2\.0|Python 3\.11|arXiv 2609\.36552|0\.[23] million|3\.9 million"
    r"|is above 0\.9 with SERA and below 0\.2"  # tested above
)


@pytest.mark.parametrize("page", ["README.md", "docs/mazes.md", "docs/images.md"])
def test_no_other_number_stands_in_a_page_of_results(page):
    text = (ROOT / page).read_text()
    for table, lines in checked_tables(text):
        text = text.replace(lines, table)
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->", " ", text, flags=re.DOTALL)
    text = flat(text)
    for of, checked in sentences():
        if of == page:
            text = text.replace(checked, " ")
    assert not re.findall(r"\S*\d\.\d\S*", re.sub(ELSEWHERE, " ", text))


@pytest.mark.parametrize("part", ["[0] * 28", pytest.param("for epoch in", marks=pytest.mark.slow)])
def test_the_page_of_sera_shows_what_its_code_prints(part):
    text = (ROOT / "docs/methods/sera.md").read_text()
    code, after = re.search(
        rf"```python\n((?:(?!```).)*?{re.escape(part)}.*?)```(.*)", text, flags=re.DOTALL
    ).groups()  # type: ignore[union-attr]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    table = re.search(r"\|[-|]+\|\n((?:\|.*\n)+)", after)[1]  # type: ignore[index]
    given = [line.replace("|", " ").split() for line in table.splitlines()]
    assert given == [line.split() for line in printed.getvalue().splitlines()]


# Pages --------------------------------------------------------------------------------------------


def test_the_coverage_of_intervals_is_that_of_its_simulation():
    simulation = runpy.run_path(str(ROOT / "benchmarks/intervals.py"))
    found = pd.read_csv(ROOT / "docs/intervals.csv")
    assert simulation["table"](found) in (ROOT / "docs/intervals.md").read_text()
    ours = found[~found.kind.str.contains("percentiles|wide")]
    assert len(ours) == 4 * len(simulation["SEEDS"]) * len(simulation["SHARES"])
    assert ours.coverage.min() >= 0.93


def test_the_page_of_metrics_is_the_table_of_the_code():
    assert (ROOT / "docs/metrics.md").read_text().endswith(glossary())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_of_the_repository(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    missing = [to for to in links if "://" not in to and not (page.parent / to).exists()]
    assert not missing


def test_commands_in_pages_name_scripts_that_exist():
    for page in PAGES:
        for script in re.findall(r"python (\w+/\w+\.py)", page.read_text()):
            assert (ROOT / script).exists(), f"{page}: {script}"


# Commands -----------------------------------------------------------------------------------------


def test_the_lines_for_another_trainer_run_with_uneven_groups():
    scope: dict = {}
    exec(block_with("python", "generate_and_grade"), scope)
    rng = np.random.default_rng(0)
    ids = np.array([7, -3, 2**40, 11])
    success = dict(zip(ids.tolist(), [0.05, 0.3, 0.6, 0.9], strict=True))

    def grade(prompts: np.ndarray) -> np.ndarray:
        return np.array([float(rng.random() < success[q]) for q in prompts.tolist()])

    plan, _ = scope["step"](ids, grade)
    assert plan.uniform
    assert plan.counts.tolist() == [16] * 4
    scope["history"].end_epoch()
    plan, weighted = scope["step"](ids, grade)
    assert not plan.uniform
    assert len(set(plan.counts.tolist())) > 1
    assert plan.counts.sum() == len(weighted) == 64
    # Each active prompt keeps the total weight N0; centred advantages sum to 0 in each group.
    sums = np.zeros(len(ids))
    np.add.at(sums, plan.index, weighted.numpy())
    np.testing.assert_allclose(sums, 0.0, atol=1e-9)
    np.testing.assert_allclose((plan.counts * plan.weights)[plan.active], 16.0)


def bash(line: str, cwd: Path) -> str:
    """The output of a command of the README, with this Python and this source."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-c", line],
        cwd=cwd,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, line + result.stdout[-1000:] + result.stderr[-2000:]
    return result.stdout


@pytest.fixture
def checkout(tmp_path):
    """A folder with the scripts and configurations, and no results but the papers'."""
    for part in ("conf", "experiments", "data", "Makefile", "pyproject.toml", "constraints"):
        (tmp_path / part).symlink_to(ROOT / part)
    (tmp_path / "results").mkdir()
    (tmp_path / "results/paper").symlink_to(ROOT / "results/paper")
    return tmp_path


def test_the_figure_at_the_top_is_drawn_by_its_command(tmp_path):
    assert "`python docs/idea.py`" in README
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs/idea.py", tmp_path / "docs")
    bash("python docs/idea.py", tmp_path)
    drawn, kept = (imread(folder / "docs/idea.png") for folder in (tmp_path, ROOT))
    assert drawn.shape == kept.shape
    # Fonts and antialiasing may differ from machine to machine, what is drawn may not.
    assert np.abs(drawn - kept).mean() < 0.02


def make_lines() -> list[str]:
    lines = "\n".join(text_blocks("bash")).splitlines()
    return [line.split("#")[0].strip() for line in lines if line.startswith("make ")]


def test_make_knows_the_targets_of_the_readme(checkout):
    assert {"make demo", "make test", "make figures"} < set(make_lines())
    for line in make_lines():
        planned = bash(f"{line} --dry-run", checkout)
        for script in re.findall(r"\S+\.py\b", planned):
            assert (ROOT / script).exists(), line


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in make_lines() if "reproduce" in line])
def test_a_table_of_the_readme_lists_its_jobs(checkout, line):
    planned = bash(f"{line} --dry-run", checkout)
    one_line = planned.replace("\\\n", " ")
    (command,) = re.findall(r"^\S+ (experiments/reproduce\.py.*)", one_line, flags=re.M)
    listed = bash(f"python {command} dry_run=true", checkout)
    scale = "paper" if "paper" in line else "laptop"
    jobs = [job for job in listed.splitlines() if f"results/maze-{scale}/" in job]
    assert len(jobs) == 18  # of three seeds: a base and five rows


@pytest.mark.slow
def test_the_commands_run_through_bash(checkout):
    """Each command of 'Train and evaluate' as it stands, with sizes cut down after it."""
    lines = block_with("bash", "experiments/evaluate.py").strip().splitlines()
    assert len(lines) == 3
    for line in lines:
        if "evaluate.py" in line:
            run = re.search(r"run=(\S+)", line)[1]  # type: ignore[index]
            # The small sizes are part of the folder's name, after n0 and n_max.
            (made,) = (checkout / "results/maze-laptop/sera").glob("n0-16_nmax-64*/seed-0")
            assert run.startswith("results/maze-laptop/sera/n0-16_nmax-64")
            small = line.replace(run, str(made.relative_to(checkout))) + " n=4 threads=1"
        else:
            # Without paths.results they would go to the checkout that the package is of.
            small = f"{line} {SMALL} paths.results=results".replace("seed=0,1,2", "seed=0,1")
        bash(small, checkout)
    runs = load_runs(checkout / "results", "maze-laptop")
    done = {m: sum(r.method == m and r.status == "done" for r in runs) for m in ("maxrl", "sera")}
    # MaxRL: two n0 and two seeds, whatever n_max; SERA: two n0, two n_max and two seeds.
    assert done == {"maxrl": 4, "sera": 8}
    # The run folder holds what the README lists.
    rows = re.findall(r"^\| (`.*?) \|", README.split("A run is a folder")[1].split("##")[0], re.M)
    files = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(files) == 8
    for name in files:
        assert list(made.glob(name.rstrip("/"))), name
