"""Every experiment × method × loss composes, and its pieces build and fit each other."""

import copy
import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from training.tiny import CONF, compose, tiny
from training.tiny_images import write_folder
from waterline.allocation import Outcomes, Request
from waterline.losses import CrossEntropy
from waterline.policies import ImageClassifier
from waterline.policies.small_llama import small_llama
from waterline.rewards import LabelVerifier, MathVerifier, MazeVerifier
from waterline.runs import BadInput, build, identity, read_metrics
from waterline.runs.naming import run_folder
from waterline.success import Oracle
from waterline.tasks.words.tokenizer import word_tokenizer
from waterline.training.assemble import (
    assemble,
    build_pieces,
    build_policy,
    build_task,
    check_config,
)
from waterline.training.labels.stage import LabelStage
from waterline.training.run import train, train_base
from waterline.training.sequences.stage import SequenceStage


def names(group):
    folder = CONF / group
    return sorted(f.relative_to(folder).with_suffix("").as_posix() for f in folder.rglob("*.yaml"))


EXPERIMENTS, METHODS, LOSSES = names("experiment"), names("method"), names("losses")
MAZES = [e for e in EXPERIMENTS if e.startswith("maze/")]
WORDS = ["smollm2/laptop"]
LANGUAGE = ["smollm2/paper", "smollm2/smoke", "qwen25_math/paper", "qwen3/paper"]
IMAGES = [e for e in EXPERIMENTS if e.startswith("imagenet/")]
SAMPLING = [m for m in METHODS if m != "ce"]
POLICY_LOSSES = [name for name in LOSSES if name != "cross_entropy"]
# Sizes, data path and devices: all that a test may change of an experiment.
DEVICES = ("trainer=cpu", "trainer.devices=1")
SMALL_MAZES = (
    "task.sft=64", "task.train=32", "task.dev=4", "task.test=4",
    "policy.model.hidden_size=16", "policy.model.layers=1", "policy.model.heads=2",
    "policy.model.kv_heads=1", "policy.model.ffn=16",
    "training.batch=4", "supervised.batch=4", *DEVICES,
)  # fmt: skip
SMALL_WORDS = (
    "task.sft=64", "task.train=32", "task.dev=4", "task.test=4",
    "policy.model.hidden_size=12", "policy.model.layers=1", "policy.model.heads=2",
    "policy.model.kv_heads=1", "policy.model.ffn=16",
    "training.batch=4", "supervised.batch=4", *DEVICES,
)  # fmt: skip
SMALL_GLYPHS = (
    "task.classes=8", "task.train=32", "task.dev=4", "task.test=4", "task.size=16",
    "policy.model.widths=[4,8]", "training.batch=4", *DEVICES,
)  # fmt: skip


def small_files(root):
    return (f"task.root={root}", "task.classes=3", "task.crop=32", "task.resize=36",
            "training.batch=4", *DEVICES)  # fmt: skip


def small_language(root):
    """A tiny model with its tokenizer and eight questions in place of what comes from the hub."""
    word_tokenizer().save_pretrained(root)
    small_llama(
        vocabulary=196, hidden_size=12, layers=1, heads=2, kv_heads=1, ffn=16, max_positions=512
    ).save_pretrained(root)
    rows = [{"question": f"What is {i} and {i}?", "answer": str(2 * i)} for i in range(12)]
    for name, part in (("train", rows[:8]), ("held", rows[8:])):
        (root / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)))
    return (
        f"policy.model.name={root}", f"task.train_file={root}/train.jsonl",
        f"task.dev_file={root}/held.jsonl", f"task.test_file={root}/held.jsonl",
        "task.train_rows=8", "task.dev_rows=null", "task.test_rows=null", "task.stop=null",
        "task.max_response=24", "training.batch=4", "trainer.num_nodes=1", *DEVICES,
        "allocation.n0=16", "allocation.n_max=64",
        "engine=shared_prefix", "~engine.max_model_len",
    )  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The overrides of a small form of each experiment."""
    root = write_folder(tmp_path_factory.mktemp("imagenet"))
    glyphs = dict.fromkeys((e for e in IMAGES if not e.endswith("/paper")), SMALL_GLYPHS)
    files = {"imagenet/paper": small_files(root)}
    mazes, words = dict.fromkeys(MAZES, SMALL_MAZES), dict.fromkeys(WORDS, SMALL_WORDS)
    own = small_language(tmp_path_factory.mktemp("language"))
    both = [e for e in LANGUAGE if not e.startswith("qwen")]
    language = dict.fromkeys(LANGUAGE, own) | dict.fromkeys(both, own[:-1])
    return mazes | words | language | glyphs | files


@pytest.fixture(scope="module")
def tasks(small):
    """One small task per experiment, which all methods share."""
    return {name: build_task(compose(*small[name], experiment=name)) for name in EXPERIMENTS}


def test_the_methods_are_those_of_the_design():
    assert {"sera", "maxrl", "grpo", "dr_grpo", "rloo", "pkpo", "reinforce", "ce"} <= set(METHODS)
    assert set(LOSSES) == {"token_mean", "seqnorm", "sequence_mean", "cross_entropy"}
    assert {*MAZES, *WORDS, *LANGUAGE, *IMAGES} == set(EXPERIMENTS)
    assert {"imagenet/laptop", "imagenet/laptop-long", "imagenet/paper"} == set(IMAGES)


def normalisation(loss):
    return {"token_mean": "token-mean", "sequence_mean": "sequence-mean"}.get(loss, loss)


@pytest.fixture(scope="module")
def configs(small):
    """The small configuration of an experiment and method, composed once."""

    @functools.cache
    def config(experiment, method, *overrides):
        return compose(*small[experiment], *overrides, experiment=experiment, method=method)

    return config


# The pieces of a room do not depend on those of another: all losses with one method will do.
OWN_LOSS = [(method, None) for method in METHODS]
OTHER_LOSS = [("sera", loss) for loss in POLICY_LOSSES]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_method_and_every_loss_composes_and_its_pieces_fit(experiment, tasks, configs):
    task, policy = tasks[experiment], build_policy(configs(experiment, "maxrl"))
    for method, loss in OWN_LOSS + OTHER_LOSS:
        config = configs(experiment, method, *([f"losses={loss}"] if loss else ()))
        assert config["method"] == method
        assert config["experiment"] == experiment.replace("/", "-")
        if method == "ce" and experiment not in IMAGES:
            with pytest.raises(BadInput, match="need a likelihood"):
                build_pieces(config, policy)
            continue
        check_config(config)
        pieces = build_pieces(config, policy)
        assert isinstance(pieces.loss, CrossEntropy) is (method == "ce")
        assert pieces.n0 == config["allocation"]["n0"]
        if loss:
            assert pieces.loss.normalisation == normalisation(loss)
        if experiment in IMAGES:
            assert isinstance(pieces.success, Oracle), "an experiment on images pins it"
    stage, _ = assemble(configs(experiment, "sera"), task)
    kinds = (LabelStage, ImageClassifier) if experiment in IMAGES else (SequenceStage, nn.Module)
    assert type(stage) is kinds[0]
    assert isinstance(stage.policy, kinds[1])
    assert stage.policy.precision == config["policy"].get("precision", "float32")
    verifier = {"images": LabelVerifier, "mazes": MazeVerifier, "mathematics": MathVerifier}[
        "images" if experiment in IMAGES else "mazes" if experiment in MAZES else "mathematics"
    ]
    assert isinstance(stage.pieces.verifier, verifier)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_experiment_changes_the_problem_and_not_the_method(experiment, configs):
    for method in METHODS:
        config = configs(experiment, method)
        plain = (CONF / "method" / f"{method}.yaml").read_text()
        rooms = ("allocation", "advantages") + ("losses",) * ("/losses" in plain)
        # The success probability of an image is known, whatever the method.
        for room in rooms if experiment in IMAGES else ("success", *rooms):
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
    allocator, total = build(config["allocation"]), np.zeros(4, dtype=np.int64)
    plan = allocator.start(Request(p=np.full(4, 0.5), known=np.ones(4, dtype=bool), n0=32))
    while plan is not None:
        total += plan.counts
        plan = allocator.next(Outcomes(trials=total, successes=total // 2))
    assert total.tolist() == [{"ce": 0, "dars_hw": 16}.get(method, 32)] * 4


def whole(method, *, experiment="maze/laptop", **settings):
    """A configuration with settings set in its mappings, as a file of the user's may set them."""
    config = copy.deepcopy(default(experiment, method))
    for name, value in settings.items():
        *above, key = name.split("__")
        node = config
        for part in above:
            node = node[part]
        node[key] = value
    return config


@pytest.mark.parametrize("experiment", ["maze/laptop", "imagenet/laptop"])
@pytest.mark.parametrize("method", METHODS)
def test_the_settings_of_a_sweep_are_accepted_by_every_method(experiment, method):
    shared = {"allocation__n0": 8, "allocation__n_min": 3, "allocation__n_max": 9,
              "allocation__u0": 0.2}  # fmt: skip
    if method == "ce" and experiment not in IMAGES:
        pytest.skip("it needs a likelihood")
    if method == "pkpo":
        shared["advantages__k"] = 8
    check_config(whole(method, experiment=experiment, **shared))


UNREAD = {
    "success__discuont": "success.discuont: did you mean success.discount",
    "allocation__n_mex": "allocation.n_mex: did you mean allocation.n_max",
    "losses__clip_lo": "losses.clip_lo: did you mean losses.clip_low",
    "advantages__zzz": "advantages.zzz: remove it",
    "policy__model__hiden_size": "policy.model.hiden_size: did you mean policy.model.hidden_size",
    "engine__max_row": "engine.max_row: did you mean engine.max_rows",
    "task__trian": "task.trian: did you mean task.train",
    "evaluation__temprature": "evaluation.temprature: did you mean evaluation.temperature",
    "evaluation__evry": "evaluation.evry: did you mean evaluation.every",
    "training__step": "training.step: did you mean training.steps",
    "training__checkpoint_evry": "did you mean training.checkpoint_every",
    "training__optimizer__lrr": "training.optimizer.lrr: did you mean training.optimizer.lr",
    "training__update__minibatch": "did you mean training.update.minibatches",
    "supervised__bach": "supervised.bach: did you mean supervised.batch",
    "supervised__optimizer__beta": "did you mean supervised.optimizer.betas",
    "trainer__device": "trainer.device: did you mean trainer.devices",
    "trainer__thread": "trainer.thread: did you mean trainer.threads",
    "base__paht": "base.paht: did you mean base.path",
    "paths__result": "paths.result: did you mean paths.results",
    "sed": "Nothing reads the setting sed: did you mean seed",
    "alocation": "alocation: did you mean allocation",
}


@pytest.mark.parametrize("setting", UNREAD)
def test_a_setting_that_nothing_reads_is_refused_with_the_nearest_name(setting):
    with pytest.raises(BadInput, match=re.escape(UNREAD[setting])) as caught:
        check_config(whole("sera", **{setting: 0.1}))
    assert "\n" not in str(caught.value)


def test_settings_of_another_kind_of_stage_are_refused():
    for setting in ("training__update", "training__temperature"):
        with pytest.raises(BadInput, match="Nothing reads the setting"):
            check_config(whole("sera", experiment="imagenet/laptop", **{setting: 1}))
    with pytest.raises(BadInput, match=r"Nothing reads the setting training\.diagnostics_every"):
        check_config(whole("sera", training__diagnostics_every=1))
    # Settings of Lightning that change what a run is, under the same name, are not taken.
    check_config(whole("sera", trainer__deterministic=True))
    for setting in ("trainer__precision", "trainer__limit_train_batches", "trainer__max_epochs"):
        with pytest.raises(BadInput, match="Nothing reads the setting trainer"):
            check_config(whole("sera", **{setting: 1}))


def test_an_unread_setting_is_found_before_a_folder_is_made(tmp_path):
    config, default = tiny(tmp_path)
    config["success"]["discuont"] = 0.1
    with pytest.raises(BadInput, match=r"did you mean success\.discount"):
        train(config, default)
    with pytest.raises(BadInput, match=r"did you mean success\.discount"):
        train_base(config)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("experiment", "override", "said"),
    [
        ("maze/laptop", "engine=labels", "engine is for labels, and training is for sequences"),
        ("maze/laptop", "training=labels",
         "policy is for sequences, and training is for labels"),
        ("imagenet/laptop", "engine=shared_prefix",
         "engine is for sequences, and training is for labels"),
        ("imagenet/laptop", "policies@policy=maze_transformer",
         "policy is for sequences, and training is for labels"),
        ("imagenet/laptop", "training=sequences",
         "policy is for labels, and training is for sequences"),
    ],
)  # fmt: skip
def test_pieces_for_another_kind_of_response_are_refused(experiment, override, said, tasks, small):
    # What the experiment sets of the other policy's network is gone with it.
    sizes = [o for o in small[experiment] if "@policy" not in override or "policy." not in o]
    config = compose(*sizes, override, experiment=experiment)
    with pytest.raises(BadInput, match=said) as caught:
        assemble(config, tasks[experiment])
    assert "\n" not in str(caught.value)


@functools.cache
def default(experiment, method):
    return compose(experiment=experiment, method=method)


def folder(method, *overrides, experiment="maze/laptop"):
    config = compose(*overrides, experiment=experiment, method=method)
    return run_folder(config, default(experiment, method)).root.as_posix()


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


def test_a_run_that_samples_nothing_has_no_budget():
    plain = folder("ce", experiment="imagenet/laptop")
    assert plain == "results/imagenet-laptop/ce/default/seed-0"
    other = ("allocation.n0=16", "allocation.n_max=32", "allocation.u0=0.2")
    assert folder("ce", *other, experiment="imagenet/laptop") == plain
    a, b = (compose(*o, experiment="imagenet/laptop", method="ce") for o in ((), other))
    assert identity(a) == identity(b)
    wide, narrow = (folder("maxrl", f"allocation.n0={n}", experiment="imagenet/laptop")
                    for n in (64, 16))  # fmt: skip
    assert wide != narrow


@pytest.mark.parametrize(
    "overrides",
    [("training.optimizer.lr=1e-3",), ("policy.frozen_batch_norm=true", "task.classes=16"),
     ("policy.model.widths=[8,16]",), ("seed=2", "training.diagnostics_every=7")],
)  # fmt: skip
def test_folder_names_of_images_are_plain(overrides):
    for method in ("ce", "sera"):
        for name in Path(folder(method, *overrides, experiment="imagenet/laptop")).parts:
            assert re.fullmatch(r"[A-Za-z0-9._-]+", name)


@pytest.mark.parametrize("method", SAMPLING)
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
@pytest.mark.parametrize("method", SAMPLING)
@pytest.mark.parametrize("experiment", [e for e in MAZES if e.endswith("/paper")])
def test_a_paper_experiment_takes_two_steps(experiment, method, tmp_path):
    sizes = (*SMALL_MAZES, "task.size=7", "policy.model.max_positions=256",
             f"paths.results={tmp_path}", "supervised.steps=2", "training.steps=2",
             "allocation.n0=16", "allocation.n_max=64", "evaluation.n=4", "evaluation.ks=[1,4]",
             "evaluation.max_rows=64", "task.train=8", "task.sft=8")  # fmt: skip
    config = compose(*sizes, experiment=experiment, method=method)
    run = train(config, compose(experiment=experiment, method=method))
    rows = read_metrics(run.metrics)
    assert [row["step"] for row in rows] == [0, 1, 2]
    saved = torch.load(run.checkpoints / "final.pt", weights_only=True)
    assert all(t.isfinite().all() for t in saved["policy"].values())
    assert all(t.dtype == torch.float32 for t in saved["policy"].values())
    # Nothing was right, and the papers' code steps nevertheless.
    assert rows[-1]["grad/skipped"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_paper_experiment_on_images_takes_two_steps(method, tmp_path):
    """ResNet-50 from its own YAML."""
    sizes = (*small_files(write_folder(tmp_path / "data")), f"paths.results={tmp_path}",
             "training.steps=2", "training.diagnostics_every=1")  # fmt: skip
    config = compose(*sizes, experiment="imagenet/paper", method=method)
    run = train(config, compose(experiment="imagenet/paper", method=method))
    rows = read_metrics(run.metrics)
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert [row["lr"] for row in rows[1:]] == [0.0, pytest.approx(0.1 / 10_010)]  # the warm-up
    assert rows[-1]["grad/skipped"] == 0
    assert rows[-1]["eval/pass@1024"] >= rows[-1]["eval/pass@1"] > 0
    assert "grad/cosine_ce" in rows[-1]
    saved = torch.load(run.checkpoints / "final.pt", weights_only=True)["policy"]
    assert saved["model.layer4.2.conv3.weight"].shape == (2048, 512, 1, 1)
    assert all(t.isfinite().all() for t in saved.values())
    start = torch.load(run.checkpoints / "step-0.pt", weights_only=True)["policy"]
    assert not all(start[name].equal(tensor) for name, tensor in saved.items())


def test_settings_that_cannot_work_are_found_before_the_base_is_trained(tmp_path):
    wrong = {
        "allocation.n_max=7": "a budget of 64 rollouts does not fit 8 prompts of at most n_max = 7",
        "task.train=30": "no multiple of the batch of 8",
        "task.size=8": "odd size",
        "losses.normalisation=mean": "losses.normalisation=mean: must be token-mean or seqnorm",
        "training.optimizer.schedule=cosin": "must be constant or cosine",
        "training.steps=0": "steps=0",
        "evaluation.split=dve": "must be dev or train",
        "training.update.minibatches=9": "minibatches=9 is above training.batch=8",
        "final.gradients.n0=[16]": "final.gradients.n0 asks to compare",
        "evaluation.n=0": "n=0",
        "success.discount=2": "success.discount=2: must be",
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
