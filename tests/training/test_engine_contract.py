"""The engine contract, through an engine in another process with weights of its own."""

import json
import os
import signal
import time

import psutil
import pytest
import torch

from toys.process_engine import ForgetsASync, ProcessEngine
from training.kills import TIMEOUT, finish, start
from training.tiny import TINY, compose, differences, record, tiny
from waterline.policies import SharedPrefixLM
from waterline.rollouts import EngineError, Rollouts, SamplingParams, SharedPrefixEngine
from waterline.runs import State, build, read_metrics
from waterline.training.assemble import build_policy
from waterline.training.run import train

# Every step has a signal and is large enough that the weights before it give other samples.
RUN = ("training.steps=5", "evaluation.every=2", "evaluation.n=16", "training.optimizer.lr=1e-2",
       "rewards._target_=toys.verifiers.EvenLength")  # fmt: skip
PROCESS = ("engine._target_=toys.process_engine.ProcessEngine", "+engine.model=${policy.model}")
# Syncs in order: the evaluation of step 0, steps 1 and 2, evaluation, steps 3 and 4, evaluation,
# step 5, evaluation.
BEFORE_STEP_4, AFTER_STEP_4 = 5, 6


@pytest.fixture(scope="module")
def inside(base, tmp_path_factory):
    """The record of a run that samples from the trainer's own weights."""
    return record(train(*tiny(tmp_path_factory.mktemp("inside"), f"base.path={base}", *RUN)).root)


@pytest.mark.slow
def test_a_run_through_another_process_has_the_same_bits(base, inside, tmp_path):
    folder = train(*tiny(tmp_path, f"base.path={base}", *RUN, *PROCESS))
    assert folder.state() is State.done
    assert differences(record(folder.root), inside) == []
    rows = read_metrics(folder.metrics)
    assert [row["step"] for row in rows if "eval/pass@1" in row] == [0, 2, 4, 5]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forgotten", "where"),
    [(BEFORE_STEP_4, "metrics/4"), (AFTER_STEP_4, "counts")],
)
def test_a_sync_that_is_left_out_is_found(base, inside, tmp_path, forgotten, where):
    folder = train(*tiny(tmp_path, f"base.path={base}", *RUN, *PROCESS,
                         "engine._target_=toys.process_engine.ForgetsASync",
                         f"+engine.forgotten={forgotten}", "~engine.max_rows",
                         "~engine.max_prefill_tokens"))  # fmt: skip
    found = differences(record(folder.root), inside)
    assert any(place.startswith(f"/{where}") for place in found)
    before = [place for place in found if place.startswith(("/metrics/1/", "/metrics/2/"))]
    assert before == [], "steps before it are the same"


@pytest.mark.slow
def test_an_engine_that_dies_ends_the_run_and_the_same_command_continues(base, tmp_path):
    settings = ("experiment=maze/laptop", "method=sera", *TINY, f"base.path={base}", *PROCESS,
                "training.checkpoint_every=1", "training.steps=12")  # fmt: skip
    process = start(tmp_path, settings)
    engine = wait_for_the_engine(process, lambda: any(tmp_path.rglob("last.pt")))
    os.kill(engine.pid, signal.SIGKILL)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1, output
    (line,) = [line for line in output.splitlines() if line.startswith("error:")]
    assert "engine's process has ended with exit code -9: start the run again" in line
    assert "Traceback" not in output
    (folder,) = (file.parent for file in tmp_path.rglob("status.json"))
    status = json.loads((folder / "status.json").read_text())
    assert status["state"] == "failed"
    assert "engine's process" in status["message"]
    kept = torch.load(folder / "checkpoints" / "last.pt", weights_only=True)
    assert 1 <= kept["done"] < 12

    finish(start(tmp_path, settings))
    inside = train(*tiny(tmp_path / "inside", f"base.path={base}", "training.checkpoint_every=1",
                         "training.steps=12"))  # fmt: skip
    assert differences(record(folder), record(inside.root)) == []


def wait_for_the_engine(process, happened):
    """The engine's process, once ``happened()``."""
    deadline = time.monotonic() + TIMEOUT
    while not happened():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    (engine,) = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if any("spawn_main" in word for word in child.cmdline())
    ]
    return engine


# Without a run.


@pytest.fixture
def policy():
    return build_policy(compose(*TINY))


def sampled(engine, policy, version):
    engine.sync(policy.named_weights(), version)
    table = Rollouts.from_prompts([3, -1], [(1, 5, 9), (1, 4)])
    params = SamplingParams(key=9, max_tokens=6, stop=(2, 7))
    return engine.extend(table, table.leaf_nodes()[:0], table.leaf_nodes()[:0], params), (
        engine.extend(table, table.roots(), table.roots() + 2, params)
    )


@pytest.mark.slow
def test_the_process_takes_over_tied_weights_by_their_names(policy):
    names = dict(policy.named_weights())
    assert "model.embed_tokens.weight" in names
    assert "lm_head.weight" not in names, "tied: it comes once"
    config = compose(*TINY, *PROCESS)
    engine = build(config["engine"], policy=policy)
    assert type(engine) is ProcessEngine
    try:
        for version in (3, 4):
            with torch.no_grad():
                for tensor in names.values():
                    tensor.mul_(1.5)
            empty, mine = sampled(engine, policy, version)
            _, theirs = sampled(SharedPrefixEngine(policy), policy, version)
            assert len(empty) == 2
            for field in ("tokens", "parent", "sample", "version", "finish"):
                assert (getattr(mine, field) == getattr(theirs, field)).all(), field
            assert differences(mine.columns["sampled_logp"].tolist(),
                               theirs.columns["sampled_logp"].tolist()) == []  # fmt: skip
        with pytest.raises(EngineError, match="cannot sync: the names of the weights differ"):
            engine.sync([("model.norm.weight", names["model.norm.weight"])], 5)
    finally:
        engine.close()


@pytest.mark.slow
def test_nothing_is_sampled_from_weights_that_were_never_synchronised(policy):
    engine = ForgetsASync(build(compose(*TINY)["policy"]["model"]), forgotten=0)
    try:
        with pytest.raises(EngineError, match="cannot extend"):
            sampled(engine, policy, 1)
    finally:
        engine.close()


def test_the_policy_is_handed_to_an_engine_that_takes_it(policy):
    engine = build(compose(*TINY)["engine"], policy=policy)
    assert type(engine) is SharedPrefixEngine
    assert engine.policy is policy
    assert isinstance(policy, SharedPrefixLM)
