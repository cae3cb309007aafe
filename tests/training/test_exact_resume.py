import shutil

import pytest

from training.kills import stopped_at
from training.tiny import differences, record, tiny
from waterline.reporting import load_runs
from waterline.reporting.budgets import budget
from waterline.runs import State
from waterline.training.run import train, train_base


@pytest.fixture(scope="module")
def whole(base, tmp_path_factory):
    """The record of a run that was never stopped."""
    folder = train(*tiny(tmp_path_factory.mktemp("whole"), f"base.path={base}"))
    assert folder.state() is State.done
    return record(folder.root)


def test_a_run_stopped_at_every_step_ends_with_the_same_bits(base, whole, tmp_path, monkeypatch):
    configs = tiny(tmp_path, f"base.path={base}", "training.checkpoint_every=2")
    for step in range(1, 10):
        with stopped_at(monkeypatch, step, late=step % 3 == 0):
            train(*configs)
    folder = train(*configs)
    assert folder.state() is State.done
    assert len(whole["metrics"]) == 10  # the base and nine steps, over two epoch boundaries
    assert any(row["allocation/waterline"] for row in whole["metrics"][1:])
    assert any(row["groups/mixed_of_batch"] for row in whole["metrics"][1:])
    assert differences(record(folder.root), whole) == []
    aside = list(folder.root.glob("metrics.*.jsonl"))
    assert aside, "rows beyond a checkpoint are set aside"


def test_a_run_that_ended_without_saying_so_is_finished_at_once(base, whole, tmp_path):
    configs = tiny(tmp_path, f"base.path={base}")
    folder = train(*configs)
    folder.set_state(State.running)
    assert train(*configs).state() is State.done
    assert differences(record(folder.root), whole) == []


def test_the_interval_of_checkpoints_may_change_in_between(base, whole, tmp_path, monkeypatch):
    every_4 = tiny(tmp_path, f"base.path={base}", "training.checkpoint_every=4")
    with stopped_at(monkeypatch, 8, late=True):
        train(*every_4)
    folder = train(*tiny(tmp_path, f"base.path={base}", "training.checkpoint_every=3"))
    assert differences(record(folder.root), whole) == []


def test_allocations_that_no_checkpoint_reached_are_made_again(base, whole, tmp_path, monkeypatch):
    configs = tiny(tmp_path, f"base.path={base}", "training.checkpoint_every=4")
    with stopped_at(monkeypatch, 6, late=True):
        train(*configs)
    run = next(tmp_path.rglob("allocation"))
    # What a kill between the two files of a checkpoint leaves behind.
    shutil.copy(run / "1-4.parquet", run / "5-8.parquet")
    folder = train(*configs)
    assert differences(record(folder.root), whole) == []


def test_supervised_training_continues_with_the_same_bits(tmp_path, monkeypatch):
    short = ("supervised.steps=10", "supervised.checkpoint_every=3")
    whole, _ = tiny(tmp_path / "a", *short)
    stopped, _ = tiny(tmp_path / "b", *short)
    for step in (4, 5, 10):
        with stopped_at(monkeypatch, step, late=False):
            train_base(stopped)
    a, b = train_base(whole), train_base(stopped)
    assert differences(record(a.root), record(b.root)) == []


def test_a_run_whose_budget_floats_counts_what_it_sampled_and_resumes(base, tmp_path, monkeypatch):
    settings = ("training.steps=4", "training.checkpoint_every=2", f"base.path={base}")
    results = (tmp_path / "whole", tmp_path / "stopped")
    whole, stopped = (tiny(path, *settings, method="dars_hw") for path in results)
    for step in (2, 3):
        with stopped_at(monkeypatch, step, late=step == 3):
            train(*stopped)
    folder, again = train(*whole), train(*stopped)
    assert differences(record(again.root), record(folder.root)) == []

    (run,) = load_runs(results[0], "maze-laptop")
    rows, given = run.metrics[run.metrics.step > 0], run.allocation
    sampled = given.groupby("step").n.sum()
    assert sampled.nunique() > 1, "no step has the budget of another"
    assert (sampled > 8 * 8).any()
    assert rows["rollouts/total"].tolist() == sampled.cumsum().tolist()
    assert budget([run], 4).rollouts == given.n.sum()
    assert budget([run], 4).tokens == rows["rollouts/tokens"].sum()
    assert budget([run], 4).waterline == 0
    lengths = rows["rollouts/tokens"].to_numpy() / sampled.to_numpy()
    assert rows["response/length"].tolist() == lengths.tolist(), "of all, not of those kept"
    assert set(given.n) == {4, 8, 16}  # 4² over twice the successes, at least 4
    active = rows["allocation/active_fraction"]
    assert (active == rows["groups/mixed_of_batch"]).all()
    assert (active < 1).any()
    assert run.normalisation == "seqnorm"
