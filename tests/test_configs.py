"""Every experiment × method × loss composes, and its pieces build and fit each other."""

import re
from pathlib import Path

import pytest
import torch

from training.tiny import CONF, compose, tiny
from waterline.runs import BadInput, build, identity, read_metrics
from waterline.training.assemble import build_policy, build_task, check_settings
from waterline.training.naming import run_folder
from waterline.training.run import train


def names(group):
    folder = CONF / group
    return sorted(f.relative_to(folder).with_suffix("").as_posix() for f in folder.rglob("*.yaml"))


EXPERIMENTS, METHODS, LOSSES = names("experiment"), names("method"), names("losses")
# Sizes, data path and devices: all that a test may change of an experiment.
SMALL = (
    "task.sft=64", "task.train=32", "task.dev=4", "task.test=4",
    "policy.model.hidden_size=16", "policy.model.layers=1", "policy.model.heads=2",
    "policy.model.kv_heads=1", "policy.model.ffn=16",
    "training.batch=4", "supervised.batch=4", "trainer=cpu", "trainer.devices=1",
)  # fmt: skip


@pytest.fixture(scope="module")
def tasks():
    """One small task per experiment, which all methods share."""
    return {name: build_task(compose(*SMALL, experiment=name)) for name in EXPERIMENTS}


def test_the_methods_are_those_of_the_design():
    assert {"sera", "maxrl", "grpo", "dr_grpo", "rloo", "pkpo", "reinforce"} <= set(METHODS)
    assert set(LOSSES) == {"token_mean", "seqnorm", "sequence_mean"}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_method_and_loss_composes_and_its_pieces_fit(experiment, tasks):
    for method in METHODS:
        for loss in LOSSES:
            config = compose(*SMALL, f"losses={loss}", experiment=experiment, method=method)
            assert config["method"] == method
            assert config["experiment"] == experiment.replace("/", "-")
            check_settings(config, tasks[experiment])
            assert build(config["losses"]).normalisation == loss.replace("_", "-").replace(
                "sequence-norm", "seqnorm"
            )
    assert build_policy(config).precision == config["policy"]["precision"]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_experiment_changes_the_problem_and_not_the_method(experiment):
    for method in METHODS:
        config = compose(experiment=experiment, method=method)
        plain = (CONF / "method" / f"{method}.yaml").read_text()
        for room in ("success", "allocation", "advantages"):
            piece = re.search(rf"override /{room}: (\w+)", plain)[1]
            target = re.search(r"_target_: (\S+)", (CONF / room / f"{piece}.yaml").read_text())[1]
            assert config[room]["_target_"] == target


@pytest.mark.parametrize("experiment", [e for e in EXPERIMENTS if e.endswith("/paper")])
def test_a_paper_experiment_opens_as_a_card(experiment):
    text = (CONF / "experiment" / f"{experiment}.yaml").read_text()
    for word in ("Reproduction card", "Table", "Expected", "Hardware", "Command"):
        assert word in text


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_the_settings_of_a_sweep(method):
    config = compose("allocation.n0=32", "allocation.n_max=48", "allocation.u0=0.1", method=method)
    allocator = build(config["allocation"])
    plan = allocator.plan([0.5] * 4, n0=32)
    assert plan.counts.tolist() == [32] * 4


def folder(method, *overrides):
    config = compose(*overrides, method=method)
    return run_folder(config, compose(method=method)).root.as_posix()


def test_folders_are_named_as_the_design_says():
    sera = folder("sera", "allocation.n0=16", "allocation.n_max=64")
    assert sera == "results/maze-laptop/sera/n0-16_nmax-64/seed-0"
    assert folder("sera", "allocation.n0=16", "allocation.n_max=64", "seed=3").endswith("/seed-3")
    assert folder("maxrl", "allocation.n0=16") == "results/maze-laptop/maxrl/n0-16/seed-0"
    assert folder("maxrl", "losses=seqnorm").endswith("_normalisation-seqnorm/seed-0")


def test_a_run_is_the_settings_that_its_pieces_read():
    wide, narrow = "allocation.n_max=64", "allocation.n_max=32"
    assert folder("maxrl", wide) == folder("maxrl", narrow)
    assert identity(compose(wide, method="maxrl")) == identity(compose(narrow, method="maxrl"))
    assert folder("sera", wide) != folder("sera", narrow)
    assert identity(compose(wide)) != identity(compose(narrow))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "overrides",
    [
        ("losses=sequence_mean",),
        ("training.optimizer.lr=1e-4", "training.update.epochs=2"),
        ("training.optimizer.betas=[0.9,0.95]",),
        ("losses.kl=k3", "losses.kl_coef=1e-3"),
    ],
)
def test_folder_names_are_plain(method, overrides):
    for name in Path(folder(method, *overrides)).parts:
        assert re.fullmatch(r"[A-Za-z0-9._-]+", name)


def test_a_method_may_be_made_on_the_command_line():
    config = compose("allocation=pilot", "advantages=grpo", method="sera")
    assert type(build(config["allocation"])).__name__ == "PilotWaterlineAllocator"
    assert folder("sera", "advantages=grpo") != folder("sera")


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("experiment", [e for e in EXPERIMENTS if e.endswith("/paper")])
def test_a_paper_experiment_takes_two_steps(experiment, method, tmp_path):
    sizes = (*SMALL, "task.size=7", "policy.model.max_positions=256", f"paths.results={tmp_path}",
             "supervised.steps=2", "training.steps=2", "allocation.n0=16", "allocation.n_max=64",
             "evaluation.n=4", "evaluation.ks=[1,4]", "evaluation.max_rows=64",
             "task.train=8", "task.sft=8")  # fmt: skip
    config = compose(*sizes, experiment=experiment, method=method)
    run = train(config, compose(experiment=experiment, method=method))
    rows = read_metrics(run.metrics)
    assert [row["step"] for row in rows] == [0, 1, 2]
    saved = torch.load(run.checkpoints / "final.pt", weights_only=True)
    assert all(t.isfinite().all() for t in saved["policy"].values())
    assert all(t.dtype == torch.float32 for t in saved["policy"].values())
    # Nothing was right, and the papers' code steps nevertheless.
    assert rows[-1]["grad/skipped"] == 0


def test_settings_that_cannot_work_are_found_before_the_base_is_trained(tmp_path):
    wrong = {
        "allocation.n_max=7": "n_max=7 times 8 prompts is 56 rollouts, fewer than the budget of 64",
        "task.train=30": "no multiple of the batch of 8",
        "task.size=8": "odd size",
        "losses.normalisation=mean": "normalisation 'mean' is unknown",
        "training.optimizer.schedule=cosin": "choose constant or cosine",
        "training.steps=0": "steps=0",
        "evaluation.split=dve": "split 'dve'",
        "evaluation.n=0": "n=0",
        "success.discount=2": "discount is 2",
    }
    for override, sentence in wrong.items():
        with pytest.raises(BadInput) as caught:
            train(*tiny(tmp_path, override))
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match=r"advantages\.k=16 is above allocation\.n0=8"):
        train(*tiny(tmp_path, method="pkpo"))
    assert not list(tmp_path.rglob("*.pt"))
    assert not list(tmp_path.rglob("config.yaml")), "a run that cannot start leaves no folder"
