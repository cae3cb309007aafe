"""A supervised start that ends by a rule on Pass@K."""

import pytest

from training.kills import stopped_at
from training.tiny import differences, record, tiny
from waterline.evaluation import SampledEvaluation
from waterline.runs import BadInput, RunFailed, State
from waterline.training.run import train, train_base
from waterline.training.until import Until

RULE = (
    "+supervised.until._target_=waterline.training.until.Until", "+supervised.until.every=4",
    "+supervised.until.after=8",
    "+supervised.until.evaluation._target_=waterline.evaluation.SampledEvaluation",
    "+supervised.until.evaluation.n=4", "+supervised.until.evaluation.ks=[1,4]",
    "supervised.steps=40", "supervised.checkpoint_every=3",
)  # fmt: skip


def rule(windows: str) -> tuple[str, ...]:
    return (*RULE, f"+supervised.until.windows={windows}")


def test_the_start_ends_at_the_first_evaluation_in_the_windows(tmp_path):
    config, default = tiny(tmp_path, *rule("[[1,0,100],[4,0,100]]"))
    folder = train_base(config)
    found = record(folder.root)
    assert folder.state() is State.done
    # None before step 8, and step 8 itself is inside.
    assert [row["step"] for row in found["metrics"] if "eval/pass@4" in row] == [8]
    assert found["checkpoints"]["final.pt"]["done"] == 8 == len(found["metrics"])
    assert (folder.root / "until" / "counts.parquet").is_file()
    assert not (folder.root / "eval").exists()  # what tables read
    assert train_base(config).state() is State.done
    assert train(config, default).state() is State.done


def test_it_ends_with_the_same_bits_when_it_was_stopped(tmp_path, monkeypatch):
    windows = rule("[[1,0,100],[4,0,100]]")
    whole = train_base(tiny(tmp_path / "whole", *windows)[0])
    config, _ = tiny(tmp_path / "stopped", *windows)
    for step in (4, 8):
        with stopped_at(monkeypatch, step, late=step == 4):
            train_base(config)
    folder = train_base(config)
    assert differences(record(folder.root), record(whole.root)) == []
    folder.set_state(State.running)  # killed after its last checkpoint
    assert differences(record(train_base(config).root), record(whole.root)) == []


@pytest.mark.parametrize("windows", ["[[1,100,100]]", "[[4,0,0],[1,99,100]]"])
def test_windows_that_nothing_meets_are_a_sentence(tmp_path, windows):
    config, _ = tiny(tmp_path, *rule(windows), "supervised.steps=12")
    with pytest.raises(RunFailed, match=r"met no evaluation .*windows \(Pass@.*change the mix"):
        train_base(config)


def test_the_rule_itself():
    until = Until(
        every=1, windows=[[1, 6, 20], [8, 75, 95]], evaluation=SampledEvaluation(n=8, ks=[1, 8])
    )
    assert until.met({"eval/pass@1": 0.06, "eval/pass@8": 0.95}, last=False)
    assert not until.met({"eval/pass@1": 0.05, "eval/pass@8": 0.8}, last=False)
    assert not until.met({"eval/pass@1": 0.1, "eval/pass@8": 0.99}, last=False)
    for row, last in ((0.21, False), (0.05, True)):
        with pytest.raises(RunFailed):
            until.met({"eval/pass@1": row, "eval/pass@8": 0.8}, last=last)


@pytest.mark.parametrize("windows", [[], [[1, 20, 6]], [[16, 0, 100]], [[2, 0, 100]], [[1, -1, 5]]])
def test_windows_that_make_no_sense_are_refused(windows):
    with pytest.raises(BadInput, match="windows"):
        Until(every=1, windows=windows, evaluation=SampledEvaluation(n=8, ks=[1, 16]))
