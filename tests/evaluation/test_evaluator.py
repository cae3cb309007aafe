import numpy as np
import pandas as pd
import pytest
import torch

from waterline.evaluation import CountsStore, EvaluationSettings, evaluate
from waterline.policies import SharedPrefixLM
from waterline.policies.maze_transformer import maze_transformer
from waterline.rollouts import SharedPrefixEngine
from waterline.runs import BadInput
from waterline.tasks.maze import MazeTask


class EndsEven:
    """The task's prompts; right is a response with an even number of different words."""

    def __init__(self):
        maze = MazeTask(5, sft=0, train=0, dev=4, test=0, max_response=6)
        self.splits, self.tokenizer = maze.splits, maze.tokenizer
        self.stop_tokens, self.max_response = maze.stop_tokens, maze.max_response

    def verify(self, prompts, responses):
        assert len(prompts) == len(responses)
        even = [len(set(r.split())) % 2 == 0 for r in responses]
        return ["correct" if e else "wrong" for e in even]


class Recording:
    """An engine that notes what it was asked, and may fail at one call."""

    def __init__(self, engine, fails_at=None):
        self.engine, self.fails_at, self.calls = engine, fails_at, []

    def extend(self, rollouts, at_nodes, counts, params):
        if len(self.calls) == self.fails_at:
            raise KeyboardInterrupt
        self.calls.append((rollouts.prompt.tolist(), counts.tolist(), params))
        return self.engine.extend(rollouts, at_nodes, counts, params)


@pytest.fixture(scope="module")
def task():
    return EndsEven()


@pytest.fixture(scope="module")
def engine():
    model = maze_transformer(hidden_size=16, layers=1, heads=2, kv_heads=1, ffn=16)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 8  # peaked and uneven, so that counts differ by prompt
    return SharedPrefixEngine(SharedPrefixLM(model))


def counts(engine, task, store, step=3, **settings):
    evaluate(engine, task, "dev", step, EvaluationSettings(n=6, **settings), store)
    return store.at(step, "dev")


def test_counts_do_not_depend_on_the_size_of_chunks(engine, task, tmp_path):
    frames = []
    for rows in (1, 6, 13, 1000):
        recording = Recording(engine)
        frames.append(counts(recording, task, CountsStore(tmp_path / f"{rows}"), max_rows=rows))
        assert len(recording.calls) == {1: 4, 6: 4, 13: 2, 1000: 1}[rows]
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0])
    assert frames[0]["n"].tolist() == [6] * 4
    assert 0 < frames[0]["c"].sum() < 24


def test_a_stopped_evaluation_goes_on_where_it_was(engine, task, tmp_path):
    whole = counts(engine, task, CountsStore(tmp_path / "whole"))
    store = CountsStore(tmp_path / "stopped")
    stopped = Recording(engine, fails_at=2)
    with pytest.raises(KeyboardInterrupt):
        counts(stopped, task, store, max_rows=6)
    assert len(store.at(3, "dev")) == 2
    again = Recording(engine)
    seen = []
    evaluate(
        again, task, "dev", 3, EvaluationSettings(n=6, max_rows=6), store,
        progress=lambda done, of: seen.append((done, of)),
    )  # fmt: skip
    assert [ids for ids, *_ in again.calls] == [[p.id] for p in task.splits["dev"][2:]]
    assert seen == [(3, 4), (4, 4)]
    pd.testing.assert_frame_equal(store.at(3, "dev"), whole)
    finished = Recording(engine)
    counts(finished, task, store)
    assert finished.calls == []


def test_checkpoints_and_methods_meet_the_same_uniforms(engine, task, tmp_path):
    one, other = Recording(engine), Recording(engine)
    counts(one, task, CountsStore(tmp_path / "one"), step=3)
    counts(other, task, CountsStore(tmp_path / "other"), step=9)
    assert one.calls[0][2].key == other.calls[0][2].key
    reseeded = Recording(engine)
    counts(reseeded, task, CountsStore(tmp_path / "reseeded"), seed=1)
    assert reseeded.calls[0][2].key != one.calls[0][2].key


def test_responses_end_as_the_task_says(engine, task, tmp_path):
    recording = Recording(engine)
    counts(recording, task, CountsStore(tmp_path / "c"), temperature=0.5, top_p=0.9, top_k=7)
    params = recording.calls[0][2]
    assert (params.max_tokens, tuple(params.stop)) == (6, task.stop_tokens)
    assert (params.temperature, params.top_p, params.top_k) == (0.5, 0.9, 7)
    assert np.all(np.array(recording.calls[0][1]) == 6)


def test_counts_of_other_sampling_are_never_taken_for_those_asked_for(engine, task, tmp_path):
    store = CountsStore(tmp_path / "c")
    first = counts(engine, task, store)
    with pytest.raises(BadInput, match=r"sampled with .*'temperature': 1.0.*asked for"):
        counts(engine, task, store, temperature=5.0)
    with pytest.raises(BadInput, match="'seed': 1"):
        counts(engine, task, store, seed=1)
    pd.testing.assert_frame_equal(counts(engine, task, store), first)


@pytest.mark.parametrize("split", ["test", "dve"])
def test_a_split_without_prompts_is_refused(engine, task, tmp_path, split):
    store = CountsStore(tmp_path / "c")
    with pytest.raises(BadInput, match=rf"no prompts in the split '{split}': choose among dev"):
        evaluate(engine, task, split, 0, EvaluationSettings(n=2), store)


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 2, "max_rows": 0}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="at least 1"):
        EvaluationSettings(**wrong)
