"""Word problems through the whole line: a base that ends by its rule, and runs that are stopped."""

from training.kills import stopped_at
from training.tiny import compose, differences, record
from waterline.runs import State
from waterline.training.run import train, train_base

SMALL = (
    "task.sft=64", "task.train=16", "task.dev=6", "task.test=6", "task.steps=[2]",
    "policy.model.hidden_size=32", "policy.model.layers=1", "policy.model.heads=2",
    "policy.model.kv_heads=1", "policy.model.ffn=64",
    "supervised.batch=16", "supervised.steps=24", "supervised.checkpoint_every=4",
    "supervised.until.every=4", "supervised.until.after=8", "supervised.until.windows=[[1,0,100]]",
    "supervised.until.evaluation.n=4", "supervised.until.evaluation.ks=[1]",
    "training.batch=8", "training.steps=5", "training.checkpoint_every=2",
    "training.optimizer.lr=1e-3", "allocation.n0=4", "allocation.n_max=16",
    "evaluation.every=2", "evaluation.n=4", "evaluation.ks=[1,4]",
    "trainer.threads=1", "trainer.enable_progress_bar=false",
)  # fmt: skip


def configs(results):
    chosen = {"experiment": "smollm2/laptop", "method": "sera"}
    return compose(*SMALL, f"paths.results={results}", **chosen), compose(**chosen)


def test_a_run_of_word_problems_that_is_stopped_ends_with_the_same_bits(tmp_path, monkeypatch):
    whole = train(*configs(tmp_path / "whole"))
    results = tmp_path / "stopped"
    for step in (3, 8):  # of the base, which ends at step 8 by its rule
        with stopped_at(monkeypatch, step, late=step == 3):
            train_base(configs(results)[0])
    for step in (1, 2, 4):
        with stopped_at(monkeypatch, step, late=step == 2):
            train(*configs(results))
    stopped = train(*configs(results))
    assert stopped.state() is State.done
    assert differences(record(stopped.root), record(whole.root)) == []
    bases = [folder / "smollm2-laptop/base/seed-0" for folder in (tmp_path / "whole", results)]
    assert differences(*map(record, bases)) == []
    assert len(record(whole.root)["metrics"]) == 6
