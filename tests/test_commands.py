"""The commands as a user types them: what they refuse, what they say, what a second call does."""

import json
import os
import re
import runpy
import shutil
import struct
import subprocess
import sys

import pandas as pd
import pytest
import torch
from hydra.core.global_hydra import GlobalHydra

from training.tiny import ROOT, TINY, compose, record, tiny
from training.tiny_images import TINY_IMAGES, run_images
from waterline.evaluation import ResponseStore
from waterline.rollouts import EngineError, Finish, Kind
from waterline.runs import BadInput, RunFolder, State, read_metrics
from waterline.runs.metrics import METRICS
from waterline.training.evaluate_run import evaluate_run
from waterline.training.run import train, train_base
from waterline.training.sequences import update as update_module

RUN = ("experiment=maze/laptop", "method=sera", *TINY)
ON_MAZES = ("experiment=maze/laptop", *TINY)
ON_IMAGES = ("experiment=imagenet/laptop", *TINY_IMAGES, "training.steps=2")


@pytest.fixture
def command(monkeypatch, capfd):
    """Calls an experiment's script in this process; gives its exit status, stdout and stderr."""
    monkeypatch.chdir(ROOT)

    def call(script, *arguments):
        file = str(ROOT / "experiments" / f"{script}.py")
        monkeypatch.setattr(sys, "argv", [file, *arguments])
        GlobalHydra.instance().clear()
        capfd.readouterr()
        try:
            runpy.run_path(file, run_name="__main__")
            status = 0
        except SystemExit as end:
            status = end.code
        return status, *capfd.readouterr()

    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")  # so that it is put back
    return call


def one_sentence(result):
    status, out, err = result
    assert status == 2, out + err
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("error: ")
    assert lines[0].endswith(".")
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), r"needs experiment= \(.*maze/laptop.*\) and method= \(ce, .*sera.*\)"),
        (("experiment=maze/laptop",), "needs method="),
        ((*RUN, "method=serra"), "no method 'serra': did you mean 'sera'"),
        ((*RUN, "method=maxrl,serra", "-m"), "no method 'serra'"),
        ((*RUN, "experiment=maze/labtop"), "did you mean 'maze/laptop'"),
        ((*RUN, "losses=seqnrm"), "did you mean 'seqnorm'"),
        (
            (*RUN, "trainning.steps=1"),
            "'trainning.steps': did you mean 'training.steps'",
        ),
        ((*RUN, "seed=0,1"), r"seed=0,1 holds several values: add -m .*seed=\[0,1\]"),
        ((*RUN, "hydra/launcher=cloud", "-m"), "no hydra/launcher 'cloud'.*local.*slurm_cpu"),
        ((*RUN, "final.split=tset"), "final.split=tset: must be dev or test, or null"),
        ((*RUN, "-m", "method=glob(zz*)"), "fits none of ce, "),
        ((*RUN, "~logger"), "logger is missing"),
        ((*RUN, "~allocation.n0"), "allocation.n0 is missing"),
        ((*RUN, "supervised=[1]"), "takes a name or a mapping"),
        ((*RUN, "trainer=[1]"), "takes a name or a mapping"),
        ((*RUN, "logger=null"), "Config group override must be"),
        ((*RUN, "~seed"), "'seed' not found"),
        ((*RUN, "+new=1"), "Nothing reads the setting new"),
        ((*RUN, "--resolve"), "--resolve flag"),
        ((*RUN, "--config-name", "tarin"), "no configuration 'tarin': did you mean 'train'"),
        ((*RUN, "--config-dir", "/nowhere"), "'/nowhere' not found"),
        ((*RUN, "task.seed=null"), "task.seed=null: must be a whole number"),
        ((*RUN, "task.path="), "task.path is empty"),
        ((*RUN, "task.path=/nowhere/a (1)"), r"no mazes at /nowhere/a \(1\)"),
        ((*RUN, "final.n=0"), "final.n=0: must be a whole number"),
        ((*RUN, "training.lr=1"), "did you mean 'training.optimizer.lr'"),
        ((*RUN, "training.steps=a=b"), "cannot be read"),
        ((*RUN, "task.size=8"), "odd size"),
        ((*RUN, "allocation.n_max=3"), "8 prompts of at most n_max = 3"),
        ((*RUN, "base.path=/nowhere.pt"), "/nowhere.pt is missing"),
        ((*RUN, "base.train_if_missing=false"), "base checkpoint .* is missing.*stage=base"),
        ((*RUN, "task.train=30"), "set its size to 24 or 32"),
        ((*RUN, "training.checkpoint_every=0"), "training.checkpoint_every=0: must be a whole"),
        ((*RUN, "training.log_every=0"), "training.log_every=0: must be a whole number"),
        ((*RUN, "training.temperature=0"), "training.temperature=0: must be a number from 0.001"),
        (
            (*RUN, "evaluation.temperature=0"),
            "evaluation.temperature=0: must be a number from",
        ),
        ((*RUN, "allocation=pilot", "allocation.m=32"), "budget|bound|m "),
        ((*RUN, "allocation.n0=eight"), "allocation.n0=eight: must be a whole number"),
        ((*RUN, "allocation.n0=1"), "at least 2 rollouts|lower bounds"),
        ((*RUN, "seed=abc"), "seed=abc: must be a whole number"),
        ((*RUN, "trainer=gpu"), "trainer.accelerator asks for a GPU"),
        ((*RUN, "trainer.devices=1000"), "trainer.devices=1000 is above the"),
        ((*RUN, "trainer.num_nodes=2"), "nothing has started the processes of the other nodes"),
        ((*RUN, "allocation.n0=2147483647"), "allocation.n0=.* from 1 to 65536"),
        ((*RUN, "training.optimizer.lr=1e300"), "of at most 1e.30"),
        ((*RUN, "evaluation.split=test"), "evaluation.split=test: must be dev or train"),
        ((*RUN, "~training"), "training has settings but no _target_"),
        ((*RUN, "~final.split"), "takes away what is not there"),
    ],
)
def test_training_refuses_in_one_sentence(command, tmp_path, arguments, said):
    assert re.search(said, one_sentence(command("train", f"paths.results={tmp_path}", *arguments)))


@pytest.mark.parametrize("results", ["null", __file__])
def test_results_that_are_no_folder_are_refused(command, results):
    assert "results" in one_sentence(command("train", *RUN, f"paths.results={results}"))
    assert "results" in one_sentence(command("reproduce", "table=4", f"results={results}"))


@pytest.mark.parametrize(
    ("script", "flags"),
    [("train", ["--help"]), ("train", ["--cfg", "job"]), ("demo", ["--cfg", "job"]),
     ("evaluate", ["--help"])],
)  # fmt: skip
def test_what_hydra_shows_needs_no_choice(command, script, flags):
    status, out, err = command(script, *flags)
    assert (status, err) == (0, "")
    assert out


def test_flags_that_show_get_the_choices_that_are_missing(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "experiments" / "train.py"), "--info", "defaults"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "experiment/maze/laptop" in done.stdout


def test_other_folders_give_the_same_results(command, tmp_path, monkeypatch):
    """A relative path is the user's, what the command leaves out is the checkout's."""
    dry = ("train", "-m", "experiment=maze/laptop", "method=sera", "hydra/launcher=local",
           "hydra.launcher.dry_run=true")  # fmt: skip
    run = "maze-laptop/sera/n0-16_nmax-64/seed-0\n"
    monkeypatch.chdir(tmp_path)
    assert f" in {ROOT}/results/{run}" in command(*dry)[1]
    assert f" in out/user=me (1)/{run}" in command(*dry, "paths.results=out/user=me (1)")[1]
    monkeypatch.chdir(ROOT / "experiments")
    assert f" in ../results/{run}" in command(*dry)[1]


NO_PARTNER = "samples nothing and allocation=none belongs to it alone"
NEEDS_LIKELIHOOD = "method=ce and success=oracle need a likelihood"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*ON_IMAGES, "method=ce", "losses=token_mean"), NO_PARTNER),
        ((*ON_IMAGES, "method=ce", "allocation=uniform"), NO_PARTNER),
        ((*ON_IMAGES, "method=sera", "losses=cross_entropy"), NO_PARTNER),
        ((*ON_IMAGES, "method=sera", "losses.kl=k3", "losses.kl_coef=1e-3"), "set kl_coef"),
        ((*ON_IMAGES, "method=sera", "losses.kl_coef=1e-3"), "kl_coef=0.001 needs a KL"),
        ((*ON_IMAGES, "method=sera", "losses.entropy_coef=1e-3"), "entropy_coef"),
        ((*ON_IMAGES, "method=sera", "engine=shared_prefix"), "engine|Engine"),
        ((*ON_IMAGES, "method=sera", "stage=base"), "has no supervised start"),
        ((*ON_IMAGES, "method=sera", "trainer.workers=-1"), "trainer.workers=-1: must be a whole"),
        ((*ON_IMAGES, "method=sera", "training.batch=0"), "training.batch=0: must be a whole"),
        ((*ON_IMAGES, "method=sera", "training.steps=0"), "training.steps=0: must be a whole"),
        ((*ON_IMAGES, "method=sera", "training.diagnostics_every=-1"), "diagnostics_every=-1"),
        ((*ON_IMAGES, "method=sera", "evaluation.split=dve"), "split=dve: must be dev or train"),
        ((*ON_IMAGES, "method=sera", "evaluation.ks=[0]"), r"evaluation.ks=\[0\]: must be"),
        ((*ON_IMAGES, "method=sera", "evaluation.every=-1"), "evaluation.every=-1: must be"),
        ((*ON_IMAGES, "method=ce", "final.gradients.n0=[4]", "final.gradients.checkpoints=[7]"),
         "weights of step 7 will not be kept"),
        ((*ON_IMAGES, "method=ce", "final.gradients.n0=[1]"), r"final.gradients.n0=\[1\]: must be"),
        ((*ON_MAZES, "method=sera", "final.split=test", "task.test=0"), "in the split 'test'"),
        ((*ON_IMAGES, "method=sera", "allocation.n_max=3"), "4 prompts of at most n_max = 3"),
        ((*ON_IMAGES, "method=sera_pilot", "allocation.m=32"), "at least 32"),
        ((*ON_IMAGES, "method=pkpo", "advantages.k=9"), "advantages.k=9 is above"),
        ((*ON_IMAGES, "method=maxrl", "allocation.n0=1"), "at least 2 rollouts"),
        ((*ON_IMAGES, "method=sera", "training.optimizer.algorithm=lamb"), "must be adamw or sgd"),
        ((*ON_IMAGES, "method=sera", "base.path=/nowhere.pt"), "/nowhere.pt is missing"),
        ((*ON_IMAGES, "method=sera", "policy.model.classes=9"), r"shape \(9,\) for 4 classes"),
        (("experiment=imagenet/laptop", "method=ce", "policies@policy=maze_transformer"),
         "policy is for sequences"),
        (("experiment=imagenet/paper", "method=ce", "trainer=cpu", "task.root=/nowhere"),
         "no folder /nowhere"),
        ((*ON_MAZES, "method=ce"), NEEDS_LIKELIHOOD),
        ((*ON_MAZES, "method=sera", "success=oracle"), NEEDS_LIKELIHOOD),
        ((*ON_MAZES, "method=sera", "losses=cross_entropy"), NEEDS_LIKELIHOOD),
        ((*ON_MAZES, "method=sera", "allocation=none"), NO_PARTNER),
        ((*ON_MAZES, "method=sera", "engine=labels"), "engine is for labels"),
        ((*ON_MAZES, "method=sera", "training=labels"), "policy is for sequences"),
        ((*ON_MAZES, "method=sera", "tasks@task=glyphs", "~task.size"),
         "judges by maze answers, and the task has label answers"),
    ],
)  # fmt: skip
def test_wrong_combinations_of_images_and_mazes_are_refused(command, tmp_path, arguments, said):
    assert re.search(said, one_sentence(command("train", f"paths.results={tmp_path}", *arguments)))
    assert not list(tmp_path.rglob("config.yaml"))


def test_a_fresh_process_says_the_same(tmp_path):
    done = subprocess.run(
        [sys.executable, "experiments/train.py", "method=serra", "experiment=maze/laptop"],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert "'sera'" in one_sentence((done.returncode, done.stdout, done.stderr))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished tiny run with its base."""
    results = tmp_path_factory.mktemp("results")
    return train(*tiny(results, "training.steps=4", "training.log_every=1"))


def base_of(run):
    return run.root.parents[2] / "base" / "seed-0"


def test_evaluation_refuses_in_one_sentence(command, run):
    there, before = f"run={run.root}", record(run.root)["counts"]
    for arguments, said in [
        ((), "run has no value"),
        (("run=/nowhere",), "/nowhere holds no run"),
        ((there, "checkpoint=7"), r"no checkpoint '7'.*\(0, 4\)"),
        ((there, "checkpoint=first"), "no checkpoint 'first'"),
        ((there, "split=dve"), "split 'dve'"),
        ((there, "n=4096", "ks=[8192]"), "Pass@8192 needs more than n=4096"),
        ((there, "n=4096", "ks=[1,0]"), r"ks=\[1,0\]: must be|ks=\[1, 0\]: must be"),
        ((there, "n=4096", "ks=abc"), "ks=abc: must be a whole number"),
    ]:
        assert re.search(said, one_sentence(command("evaluate", *arguments)))
    assert record(run.root)["counts"] == before, "nothing is evaluated before it is refused"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("last.pt", b"PK", "last.pt is cut short.*starts afresh"),
        ("last.pt", None, "last.pt is no state of this run.*starts afresh"),
        ("final.pt", b"", "final.pt is empty: restore it, choose another checkpoint"),
    ],
)
def test_a_damaged_checkpoint_of_a_run_is_a_sentence(command, run, tmp_path, name, content, said):
    experiment = run.root.parents[2]
    shutil.copytree(experiment, tmp_path / experiment.name)
    copy = RunFolder(tmp_path / run.root.relative_to(experiment.parent))
    file = copy.checkpoints / name
    file.write_bytes((copy.checkpoints / "final.pt").read_bytes() if content is None else content)
    if name == "last.pt":
        copy.set_state(State.preempted)
        steps = ("training.steps=4", "training.log_every=1")
        result = command("train", *RUN, *steps, f"paths.results={tmp_path}")
    else:
        result = command("evaluate", f"run={copy.root}", "n=2")
    assert re.search(said, one_sentence(result))


def test_reproduction_and_report_refuse_in_one_sentence(command, tmp_path):
    root = f"results={tmp_path}"
    assert "table has no value" in one_sentence(command("reproduce"))
    assert "Table 77" in one_sentence(command("reproduce", "table=77", root))
    for table in (6, 7, 8, 9):
        said = one_sentence(command("reproduce", f"table={table}", root))
        assert f"Table {table} exists at scale=paper alone" in said
    assert "seeds=[]: must be" in one_sentence(command("reproduce", "table=4", "seeds=[]", root))
    wrong = 'overrides=["training.steps=0"]'  # before a job is started
    assert "training.steps=0: must be" in one_sentence(command("reproduce", "table=4", wrong, root))
    slurm = ("hydra/launcher=slurm_cpu", "hydra.launcher.nodes=0", "dry_run=true", root)
    assert "hydra.launcher.nodes=0: must be" in one_sentence(
        command("reproduce", "table=4", *slurm)
    )
    assert "scale=big: must be" in one_sentence(command("report", "table=4", "scale=big"))
    assert "scale=big" in one_sentence(command("reproduce", "table=4", "scale=big", root))
    cloud = one_sentence(command("reproduce", "table=4", "hydra/launcher=cloud", root))
    assert "no hydra/launcher 'cloud'" in cloud
    assert "choose local" in one_sentence(
        command("reproduce", "table=4", "hydra/launcher=basic", root)
    )
    assert "holds no run" in one_sentence(command("report", "table=4", f"root={tmp_path}"))


def test_evaluating_prints_the_counts_and_does_not_sample_twice(command, run):
    before = record(run.root)["counts"]
    arguments = (f"run={run.root}", "split=test", "n=6", "checkpoint=4")
    status, out, err = command("evaluate", *arguments)
    assert (status, err) == (0, "")
    assert "Pass@4" in out
    assert "Pass@8" not in out
    counts = record(run.root)["counts"]
    assert [row for row in counts if row["split"] == "dev"] == before
    test = [row for row in counts if row["split"] == "test"]
    assert [row["n"] for row in test] == [6] * 8
    changed = (run.eval / "counts.parquet").stat().st_mtime_ns
    command("evaluate", *arguments)
    assert (run.eval / "counts.parquet").stat().st_mtime_ns == changed


def test_responses_are_kept_and_shown(command, run, tmp_path):
    asked = (f"run={run.root}", "split=test")
    assert "holds no responses on test" in one_sentence(command("show", *asked))
    shutil.copytree(run.root, tmp_path / "run", ignore=shutil.ignore_patterns("eval"))
    asked = (f"run={tmp_path / 'run'}", "split=test")
    assert command("evaluate", *asked, "n=6", "keep_responses=true")[0] == 0
    rows = ResponseStore(tmp_path / "run/eval/responses").read(4, "test")
    status, out, err = command("show", *asked, "limit=2")
    assert (status, err) == (0, "")
    assert len(rows) == sum(int(n) for n in re.search(r"all +([\d ]+)", out)[1].split()) == 48
    prompt = rows["prompt"].iloc[0]
    status, out, err = command("show", *asked, f"prompt={prompt}", "limit=1")
    assert (status, err) == (0, "")
    for name, found in rows[rows["prompt"] == prompt].groupby("verdict"):
        assert f"{name}: {len(found)} of 6" in out
        assert found["text"].iloc[0].split()[0] in out
    assert "Right answer" in out
    assert "verdict=good: must be correct or" in one_sentence(
        command("show", *asked, "verdict=good")
    )
    assert "no such question; its ids begin" in one_sentence(command("show", *asked, "prompt=5"))


def test_an_evaluation_may_have_rules_of_its_own(command, run):
    asked = (f"run={run.root}", "split=test", "rewards={nonsense:1}")
    assert "rewards" in one_sentence(command("evaluate", *asked))


@pytest.mark.slow
def test_processes_of_torchrun_share_an_evaluation(run, tmp_path):
    """The same counts and responses from two processes as from one."""
    found = []
    for launch in ([], ["-m", "torch.distributed.run", "--nproc-per-node=2"]):
        copy = tmp_path / f"run{len(launch)}"
        shutil.copytree(run.root, copy, ignore=shutil.ignore_patterns("eval"))
        done = subprocess.run(
            [sys.executable, *launch, str(ROOT / "experiments/evaluate.py"), f"run={copy}",
             "split=test", "n=6", "keep_responses=true", "max_rows=12"],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("Pass@4") == 1, "the first alone speaks"
        found.append((pd.read_parquet(copy / "eval/counts.parquet"),
                      ResponseStore(copy / "eval/responses").read(4, "test")))  # fmt: skip
    for one, two in zip(*found, strict=True):
        pd.testing.assert_frame_equal(one, two)


def test_two_checkpoints_meet_the_same_uniforms(run):
    """The base policy is the run's step 0: evaluated in either folder, its counts are equal."""
    here = evaluate_run(run.root, checkpoint=0, split="test", n=8).at(0, "test")
    base = evaluate_run(base_of(run), split="test", n=8).at(0, "test")
    pd.testing.assert_frame_equal(here, base)
    assert here["c"].sum() > 0


def test_a_finished_run_is_not_run_again(command, run):
    before = record(run.root)
    arguments = ("training.steps=4", "training.log_every=1", f"paths.results={run.root.parents[3]}")
    status, out, err = command("train", *RUN, *arguments)
    assert (status, out, err) == (0, f"{run.root}: done\n", "")
    assert record(run.root) is not before
    assert [p.name for p in run.root.parents[1].iterdir()] == [run.root.parent.name]


def test_the_console_keeps_to_the_run(command, tmp_path, run):
    base = base_of(run) / "checkpoints" / "final.pt"
    status, out, err = command(
        "train", *RUN, f"paths.results={tmp_path}", f"base.path={base}", "training.steps=2"
    )
    assert status == 0
    assert err == ""
    assert all(" step " in line or line.endswith(": done") for line in out.splitlines())


def test_a_folder_of_other_settings_is_left_as_it_is(run, tmp_path):
    config, default = tiny(run.root.parents[3], "training.steps=4", "training.log_every=1")
    other, _ = tiny(run.root.parents[3], "supervised.steps=101")
    with pytest.raises(BadInput, match="other settings"):
        train_base(other)
    run.set_state(State.running)
    provenance = run.provenance.read_text()
    changed = json.loads(provenance) | {"identity": "of another"}
    run.provenance.write_text(json.dumps(changed))
    with pytest.raises(BadInput, match="other settings"):
        train(config, default)
    assert run.state() is State.running
    run.provenance.write_text(provenance)
    run.set_state(State.done)


def written(*folders):
    return {
        re.sub(r"@\d+$", "@{K}", name)
        for folder in folders
        for row in read_metrics(folder / "metrics.jsonl")
        for name in row
    }


def documented(*tasks):
    return {name for name, metric in METRICS.items() if metric.tasks in tasks}


def test_training_writes_the_documented_names_and_no_others(run, tmp_path):
    assert written(run.root, base_of(run)) == documented("all", "sequences")
    assert written(run_images(tmp_path).root) == documented("all", "images")


def test_a_run_on_images_through_the_commands(command, tmp_path):
    arguments = (*ON_IMAGES, "method=sera", f"paths.results={tmp_path}", "training.log_every=1")
    status, out, err = command("train", *arguments)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert all(" step " in line for line in lines[:-1])
    assert lines[-1].endswith(": done")
    root = lines[-1].removesuffix(": done")
    status, out, err = command("train", *arguments)
    assert (status, out, err) == (0, f"{root}: done\n", "")
    status, out, err = command("evaluate", f"run={root}", "split=test", "ks=[1,1024]")
    assert (status, err) == (0, "")
    assert "Pass@1024" in out
    status, out, err = command(
        "gradients", f"run={root}", "n0=[4]", "resamplings=2", "batches=1", "threads=1"
    )
    assert status == 0
    assert err == ""
    assert out.splitlines()[-1] == f"{root}/gradients"
    one_sentence(command("gradients", f"run={tmp_path}/nowhere"))
    one_sentence(command("gradients"))


class EmptyEngine:
    """An engine with a fault: its responses have no token, not even the stop token."""

    responses = "sequences"

    def __init__(self, policy):
        self.policy = policy

    def sync(self, named_tensors, version):
        self.version = version

    def close(self):
        pass

    def extend(self, rollouts, at_nodes, counts, params):
        parent = at_nodes.repeat(counts)
        return rollouts.grown(
            parent, [parent[:0]] * len(parent), Kind.MODEL, version=0,
            finish=(0 * parent + Finish.STOP).astype("int8"), sample=0 * parent,
            logp=[torch.zeros(0).numpy()] * len(parent),
        )  # fmt: skip


def test_a_response_without_a_token_is_refused(run, tmp_path):
    sys.modules.setdefault("empty_engine", sys.modules[__name__])
    base = base_of(run) / "checkpoints" / "final.pt"
    configs = tiny(tmp_path, f"base.path={base}", "evaluation.every=0",
                   "engine._target_=empty_engine.EmptyEngine", "~engine.max_rows",
                   "~engine.max_prefill_tokens")  # fmt: skip
    with pytest.raises(EngineError, match=r"without a token.*stop token") as caught:
        train(*configs)
    assert "\n" not in str(caught.value)


def test_a_loss_that_is_no_number_stops_the_run_and_saves_the_batch(
    command, run, tmp_path, monkeypatch
):
    base = base_of(run) / "checkpoints" / "final.pt"
    loss = update_module.PolicyLoss.__call__

    def breaks(self, **tensors):
        return loss(self, **tensors) * float("nan")

    monkeypatch.setattr(update_module.PolicyLoss, "__call__", breaks)
    said = one_sentence(command("train", *RUN, f"paths.results={tmp_path}", f"base.path={base}"))
    file = next(tmp_path.rglob("nan-batch-step-*.pt"))
    assert str(file) in said
    assert "loss is nan at step" in said
    saved = torch.load(file, weights_only=True)
    start = torch.load(base, weights_only=True)["policy"]
    assert all(saved["policy"][name].equal(tensor) for name, tensor in start.items())
    assert len(saved["weight"]) == len(saved["node"]) == len(saved["length"]) == 64
    assert len(saved["advantage"]) == saved["length"].sum()
    assert saved["rollouts"]["tokens"].numel() > 0
    status = json.loads(next(tmp_path.rglob("sera/*/*/status.json")).read_text())
    assert status["state"] == "failed"
    assert status["message"] in said
    log = next(tmp_path.rglob("sera/*/*/log.txt"))
    assert log.exists()


def test_a_step_without_signal_is_told_counted_and_skipped(run, tmp_path, caplog, monkeypatch):
    hopeless = ("supervised.steps=1", "training.steps=5", "evaluation.every=0")
    with caplog.at_level("WARNING", logger="waterline"):
        folder = train(*tiny(tmp_path, *hopeless))
    rows = read_metrics(folder.metrics)
    assert [row["grad/skipped"] for row in rows] == [1, 2, 3, 4, 5]
    assert all(row["grad/norm"] is None for row in rows)
    told = [r.getMessage() for r in caplog.records if "had no signal" in r.getMessage()]
    assert len(told) == 3  # the first, second and fourth
    assert "training.step_on_no_signal=true" in told[0]
    start = torch.load(base_checkpoint(tmp_path), weights_only=True)["policy"]
    end = torch.load(folder.checkpoints / "final.pt", weights_only=True)["policy"]
    assert all(end[name].equal(tensor) for name, tensor in start.items())

    folder = train(*tiny(tmp_path, *hopeless, "training.step_on_no_signal=true"))
    rows = read_metrics(folder.metrics)
    assert [row["grad/skipped"] for row in rows] == [0] * 5
    end = torch.load(folder.checkpoints / "final.pt", weights_only=True)["policy"]
    # Weight decay acts without a gradient.
    assert not all(end[name].equal(tensor) for name, tensor in start.items())


def base_checkpoint(results):
    return next(results.rglob("base/seed-0/checkpoints/final.pt"))


def mirrored(file):
    """The records of an offline file of Weights & Biases: a LevelDB log of protocol buffers."""
    data, place, held = file.read_bytes(), 7, b""
    while place + 7 <= len(data):
        room = 32768 - place % 32768
        if room < 7:
            place += room
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        held += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield held
            held = b""


def test_the_mirror_writes_the_same_rows_under_one_id(run, tmp_path):
    pytest.importorskip("wandb")
    from wandb.proto.wandb_internal_pb2 import Record

    base = base_of(run) / "checkpoints" / "final.pt"
    settings = ("logger=wandb", f"base.path={base}", "training.steps=2")
    folder = train(*tiny(tmp_path, *settings))
    folder.set_state(State.running)  # a restart, as after a requeue
    train(*tiny(tmp_path, *settings))
    files = sorted(folder.root.rglob("run-*.wandb"))
    assert len(files) == 2
    entries = [Record.FromString(data) for file in files for data in mirrored(file)]
    assert len({e.run.run_id for e in entries if e.HasField("run")}) == 1
    rows = [
        {item.key or item.nested_key[0]: json.loads(item.value_json) for item in e.history.item}
        for e in entries
        if e.HasField("history")
    ]
    logged = read_metrics(folder.metrics)
    assert len(rows) == len(logged)
    for mirror, row in zip(rows, logged, strict=True):
        assert row.keys() == {name for name in mirror if not name.startswith("_")}
        assert mirror["step"] == row["step"]


@pytest.mark.slow
def test_a_sweep_goes_on_after_a_bad_job(command, tmp_path, run):
    base = base_of(run) / "checkpoints" / "final.pt"
    settings = [s for s in RUN if not s.startswith(("method", "allocation.n0", "allocation.n_max"))]
    status, _, err = command(
        "train", "-m", *settings, "method=maxrl,sera", "allocation.n0=8,16",
        "allocation.n_max=12,32", "seed=0,1", "training.steps=2", f"paths.results={tmp_path}",
        f"base.path={base}", f"hydra.sweep.dir={tmp_path}/multirun",
    )  # fmt: skip
    # SERA with n0=16 and n_max=12 cannot meet its budget; MaxRL does not read n_max.
    assert status == 2
    (line,) = err.strip().splitlines()
    assert "2 of 16 jobs failed (sera n0=16 n_max=12 seed=0, sera n0=16 n_max=12 seed=1)" in line
    assert "at most n_max = 12" in line
    done = sorted(
        f.parent.relative_to(tmp_path / "maze-laptop").as_posix()
        for f in tmp_path.rglob("config.yaml")
        if "multirun" not in f.parts
    )
    assert len(done) == 2 * 2 + 2 * 3
    assert len({d for d in done if d.startswith("maxrl")}) == 4


def test_names_of_a_config_are_those_of_the_folders():
    assert compose()["experiment"] == "maze-laptop"
