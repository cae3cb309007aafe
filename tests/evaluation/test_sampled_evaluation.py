from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from waterline.evaluation import CountsStore, ResponseStore, SampledEvaluation, Subject
from waterline.policies import SharedPrefixLM
from waterline.policies.maze_transformer import maze_transformer
from waterline.rewards import Judgement, judgement
from waterline.rollouts import Finish, Ranks, SharedPrefixEngine
from waterline.runs import BadInput
from waterline.tasks.maze import MazeTask


class EvenWords:
    """Right is a response with an even number of different words, to whatever answer."""

    def __init__(self):
        self.complete = []

    def __call__(self, answers, responses, complete):
        assert len(answers) == len(responses) == len(complete)
        self.complete += complete.tolist()
        even = [len(set(r.split())) % 2 == 0 for r in responses]
        return judgement(["correct" if e else "wrong" for e in even])


class Recording:
    """An engine that notes what it was asked, and may fail at one call."""

    def __init__(self, engine, fails_at=None):
        self.engine, self.fails_at, self.calls, self.synced = engine, fails_at, [], []
        self.finish = []

    def sync(self, named_tensors, version):
        self.synced.append((len(self.calls), dict(named_tensors), version))

    def extend(self, rollouts, at_nodes, counts, params):
        if len(self.calls) == self.fails_at:
            raise KeyboardInterrupt
        self.calls.append((rollouts.prompt.tolist(), counts.tolist(), params))
        grown = self.engine.extend(rollouts, at_nodes, counts, params)
        self.finish += grown.finish[len(rollouts) :].tolist()
        return grown


@pytest.fixture(scope="module")
def task():
    return MazeTask(5, sft=0, train=0, dev=4, test=0, max_response=6)


@pytest.fixture(scope="module")
def engine():
    model = maze_transformer(hidden_size=16, layers=1, heads=2, kv_heads=1, ffn=16)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 8  # peaked and uneven, so that counts differ by prompt
    return SharedPrefixEngine(SharedPrefixLM(model))


def subject_of(engine, task, seed=0, version=0):
    """The policy of an engine, or of the engine inside of a recording one, with that engine."""
    policy = getattr(engine, "engine", engine).policy
    return Subject(
        task=task, policy=policy, engine=engine, verifier=EvenWords(), ranks=Ranks(), seed=seed,
        version=version,
    )  # fmt: skip


def counts(engine, task, folder, step=3, seed=0, **settings):
    evaluation = SampledEvaluation(n=6, **settings)
    evaluation.measure(subject_of(engine, task, seed), "dev", step, folder)
    return evaluation.store(folder).at(step, "dev")


def test_counts_do_not_depend_on_the_size_of_chunks(engine, task, tmp_path):
    frames = []
    for rows in (1, 6, 13, 1000):
        recording = Recording(engine)
        frames.append(counts(recording, task, tmp_path / f"{rows}", max_rows=rows))
        assert len(recording.calls) == {1: 4, 6: 4, 13: 2, 1000: 1}[rows]
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0])
    assert frames[0]["n"].tolist() == [6] * 4
    assert 0 < frames[0]["c"].sum() < 24


def test_a_stopped_evaluation_goes_on_where_it_was(engine, task, tmp_path):
    whole = counts(engine, task, tmp_path / "whole")
    folder, evaluation = tmp_path / "stopped", SampledEvaluation(n=6, max_rows=6)
    store = evaluation.store(folder)
    stopped = Recording(engine, fails_at=2)
    with pytest.raises(KeyboardInterrupt):
        counts(stopped, task, folder, max_rows=6)
    assert len(store.at(3, "dev")) == 2
    again = Recording(engine)
    seen = []
    evaluation.measure(
        subject_of(again, task), "dev", 3, folder,
        progress=lambda done, of: seen.append((done, of)),
    )  # fmt: skip
    assert [ids for ids, *_ in again.calls] == [[p.id] for p in task.splits["dev"][2:]]
    assert seen == [(3, 4), (4, 4)]
    pd.testing.assert_frame_equal(store.at(3, "dev"), whole)
    finished = Recording(engine)
    counts(finished, task, folder)
    assert finished.calls == finished.synced == []


def evaluated(engine, task, folder, n, **settings):
    evaluation = SampledEvaluation(n=n, **settings)
    recording = Recording(engine)
    evaluation.measure(subject_of(recording, task), "dev", 3, folder)
    return recording, evaluation.store(folder).at(3, "dev")


@pytest.mark.parametrize("order", [(6, 2, 6, 9), (1, 9), (2, 3, 4, 9), (9, 1), (9, 9)])
def test_responses_are_kept_and_only_those_that_are_missing_are_drawn(
    engine, task, tmp_path, order
):
    _, whole = evaluated(engine, task, tmp_path / "whole", 9)
    most = 0
    for n in order:
        recording, rows = evaluated(engine, task, tmp_path / "c", n)
        asked = [counts for _, counts, _ in recording.calls]
        assert asked == ([[n - most] * 4] if n > most else [])
        most = max(most, n)
        assert rows["n"].tolist() == [most] * 4
    pd.testing.assert_frame_equal(rows, whole)


def test_a_larger_evaluation_that_is_stopped_keeps_what_there_was(engine, task, tmp_path):
    _, whole = evaluated(engine, task, tmp_path / "whole", 9)
    _, before = evaluated(engine, task, tmp_path / "c", 4)
    evaluation = SampledEvaluation(n=9, max_rows=9)
    with pytest.raises(KeyboardInterrupt):
        evaluation.measure(subject_of(Recording(engine, 1), task), "dev", 3, tmp_path / "c")
    rows = evaluation.store(tmp_path / "c").at(3, "dev")
    assert rows["n"].tolist() == [9, 4, 4, 4] or sorted(rows["n"]) == [4, 4, 4, 9]
    kept = rows["n"] == 4
    pd.testing.assert_frame_equal(rows[kept], before[kept])
    _, rows = evaluated(engine, task, tmp_path / "c", 9)
    pd.testing.assert_frame_equal(rows, whole)


def test_the_engine_gets_the_weights_before_the_first_response(engine, task, tmp_path):
    recording = Recording(engine)
    subject = subject_of(recording, task, version=17)
    SampledEvaluation(n=6, max_rows=6).measure(subject, "dev", 17, tmp_path)
    ((calls, weights, version),) = recording.synced
    assert (calls, version) == (0, 17)
    plain = dict(subject.policy.model.named_parameters())
    assert weights.keys() == plain.keys(), "by their Hugging Face names"
    assert all(weights[name] is plain[name] for name in plain)


def test_the_verifier_sees_which_responses_ended_by_themselves(engine, task, tmp_path):
    recording = Recording(engine)
    subject = subject_of(recording, task)
    SampledEvaluation(n=6).measure(subject, "dev", 3, tmp_path)
    expected = [finish != Finish.LENGTH for finish in recording.finish]
    assert subject.verifier.complete == expected
    assert 0 < sum(expected) < 24


def test_success_is_counted_and_not_reward(engine, task, tmp_path):
    def verifier(answers, responses, complete):
        n = len(responses)
        wrong = np.arange(n) % 3 > 0
        return Judgement(~wrong, np.where(wrong, 0.9, 0.2), np.full(n, "wrong"))

    subject = replace(subject_of(engine, task), verifier=verifier)
    evaluation = SampledEvaluation(n=6, ks=[1, 3, 6, 8])
    evaluation.measure(subject, "dev", 0, tmp_path)
    assert evaluation.store(tmp_path).at(0, "dev")["c"].tolist() == [2] * 4
    metrics = evaluation.metrics(tmp_path, "dev", 0)
    assert metrics.keys() == {"eval/pass@1", "eval/pass@3", "eval/pass@6"}, "K up to n"
    assert metrics["eval/pass@1"] == pytest.approx(2 / 6)
    assert metrics["eval/pass@3"] == pytest.approx(1 - 4 / 20)
    assert metrics["eval/pass@6"] == 1


def test_checkpoints_and_methods_are_sampled_with_the_same_uniforms(engine, task, tmp_path):
    one, other = Recording(engine), Recording(engine)
    counts(one, task, tmp_path / "one", step=3)
    counts(other, task, tmp_path / "other", step=9)
    assert one.calls[0][2].key == other.calls[0][2].key
    reseeded = Recording(engine)
    counts(reseeded, task, tmp_path / "reseeded", seed=1)
    assert reseeded.calls[0][2].key != one.calls[0][2].key


def test_responses_end_as_the_task_says(engine, task, tmp_path):
    recording = Recording(engine)
    counts(recording, task, tmp_path / "c", temperature=0.5, top_p=0.9, top_k=7)
    params = recording.calls[0][2]
    assert (params.max_tokens, tuple(params.stop)) == (6, task.stop_tokens)
    assert (params.temperature, params.top_p, params.top_k) == (0.5, 0.9, 7)
    assert np.all(np.array(recording.calls[0][1]) == 6)


def test_counts_of_other_sampling_are_never_taken_for_those_asked_for(engine, task, tmp_path):
    folder = tmp_path / "c"
    first = counts(engine, task, folder)
    with pytest.raises(BadInput, match=r"made with .*'temperature': 1.0.*asked for"):
        counts(engine, task, folder, temperature=5.0)
    with pytest.raises(BadInput, match="'seed': 1"):
        counts(engine, task, folder, seed=1)
    pd.testing.assert_frame_equal(counts(engine, task, folder), first)


@pytest.mark.parametrize("split", ["test", "dve"])
def test_a_split_without_prompts_is_refused(engine, task, tmp_path, split):
    with pytest.raises(BadInput, match=rf"no prompts in the split '{split}': choose among dev"):
        SampledEvaluation(n=2).measure(subject_of(engine, task), split, 0, tmp_path)


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 2.0}, {"n": 2, "max_rows": 0}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="must be a whole number from 1"):
        SampledEvaluation(**wrong)


def kept(engine, task, folder, n, max_rows=8192):
    evaluation = SampledEvaluation(n=n, max_rows=max_rows, keep_responses=True)
    evaluation.measure(subject_of(engine, task), "dev", 3, folder)
    return ResponseStore(folder / "responses").read(3, "dev")


def test_kept_responses_are_those_that_were_counted(engine, task, tmp_path):
    rows = kept(engine, task, tmp_path, 6)
    held = SampledEvaluation(n=6).store(tmp_path).held(3, "dev")
    assert rows["sample"].tolist() == [*range(6)] * 4
    right = (rows["verdict"] == "correct").groupby(rows["prompt"]).sum()
    assert {p: (6, c) for p, c in right.items()} == held
    assert (rows["reward"] == (rows["verdict"] == "correct")).all()
    assert rows["tokens"].between(1, 6).all()
    assert (
        rows["text"]
        .map(lambda text: len(set(text.split())) % 2 == 0)
        .equals(rows["verdict"] == "correct")
    )


@pytest.mark.parametrize("written", ["before the counts", "after the counts"])
def test_a_kill_loses_no_response_and_doubles_none(engine, task, tmp_path, monkeypatch, written):
    whole = kept(engine, task, tmp_path / "whole", 6)
    write = CountsStore.write

    def killed(store, *rows):
        if written == "after the counts":
            write(store, *rows)
        raise KeyboardInterrupt

    for max_rows in (6, 13):  # chunks of other sizes too
        with monkeypatch.context() as patch:
            patch.setattr(CountsStore, "write", killed)
            with pytest.raises(KeyboardInterrupt):
                kept(engine, task, tmp_path / "killed", 6, max_rows)
    pd.testing.assert_frame_equal(kept(engine, task, tmp_path / "killed", 6, 6), whole)


def test_responses_are_added_to_those_of_a_smaller_evaluation(engine, task, tmp_path):
    kept(engine, task, tmp_path / "grown", 2)
    whole = kept(engine, task, tmp_path / "whole", 6)
    pd.testing.assert_frame_equal(kept(engine, task, tmp_path / "grown", 6), whole)


def test_responses_that_were_not_kept_or_are_damaged_are_a_sentence(engine, task, tmp_path):
    store = ResponseStore(tmp_path / "responses")
    with pytest.raises(BadInput, match="holds no responses on dev: evaluate with keep_responses"):
        store.last("dev")
    kept(engine, task, tmp_path, 2)
    assert store.last("dev") == 3
    (file,) = tmp_path.rglob("prompts-*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(BadInput, match="cannot be read"):
        store.read(3, "dev")


def test_counts_by_other_rules_are_not_mixed(engine, task, tmp_path):
    evaluation = SampledEvaluation(n=2)
    evaluation.measure(subject_of(engine, task), "dev", 3, tmp_path)
    other = replace(subject_of(engine, task), rules={"max_length_is_wrong": True})
    with pytest.raises(BadInput, match="max_length_is_wrong"):
        evaluation.measure(other, "dev", 3, tmp_path)
