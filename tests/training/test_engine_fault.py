"""An engine that fails in the middle of a run: one line, exit status 1; the run goes on later."""

import pytest

from training.tiny import differences, record, tiny
from waterline.rollouts import EngineError, SharedPrefixEngine
from waterline.runs import RunFolder, State, sentence_errors
from waterline.training.run import train


def fails_at(patch, call):
    """The engine's calls from this one on raise."""
    extend, calls = SharedPrefixEngine.extend, []

    def sampled(self, *arguments):
        calls.append(1)
        if len(calls) >= call:
            raise EngineError("The engine has died: start the same command again.")
        return extend(self, *arguments)

    patch.setattr(SharedPrefixEngine, "extend", sampled)


# The first two calls are those of the evaluation before the first step.
@pytest.mark.parametrize(("call", "done"), [(1, 0), (5, 2)])
def test_a_fault_ends_a_run_with_one_line_and_status_1(
    base, tmp_path, monkeypatch, capsys, call, done
):
    short = (f"base.path={base}", "training.steps=3", "training.checkpoint_every=1")
    whole = record(train(*tiny(tmp_path / "whole", *short)).root)
    configs = tiny(tmp_path / "failed", *short)
    with monkeypatch.context() as patch:
        fails_at(patch, call)
        with pytest.raises(SystemExit) as ended, sentence_errors():
            train(*configs)
    assert ended.value.code == 1, "and not 2, which is bad input"
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert errors == ["error: The engine has died: start the same command again."]
    (config,) = (tmp_path / "failed").rglob("config.yaml")
    folder = RunFolder(config.parent)
    assert folder.state() is State.failed
    assert (folder.checkpoints / "last.pt").exists() == (done > 0)
    assert train(*configs).state() is State.done
    assert differences(record(folder.root), whole) == []
