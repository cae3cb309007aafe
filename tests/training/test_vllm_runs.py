"""Runs that sample by vLLM: the command as a user types it, and a kill between two steps."""

import json
import time

import pandas as pd
import pytest

from training.kills import TIMEOUT, finish, kill_when, start
from training.tiny import ROOT
from waterline.runs import RunFolder, read_metrics

pytest.importorskip("vllm")
MODEL = ROOT / "data/smollm2-135m"
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not MODEL.is_dir(), reason="python data/smollm2_135m.py makes the model"),
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("questions")
    rows = [
        {"question": f"Ann has {i} apples and buys {i + 2} more. How many has she?",
         "answer": str(2 * i + 2)} for i in range(2, 16)
    ]  # fmt: skip
    for name, part in (("train", rows[:12]), ("held", rows[12:])):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)))
    return (
        "experiment=smollm2/smoke", "method=sera", "engine=vllm", "engine.kv_cache_gib=0.25",
        "engine.max_model_len=256", "engine.max_num_seqs=16", "engine.enforce_eager=true",
        f"task.train_file={folder}/train.jsonl", f"task.dev_file={folder}/held.jsonl",
        f"task.test_file={folder}/held.jsonl", "task.train_rows=12", "task.dev_rows=null",
        "task.test_rows=null", "task.max_response=24", "training.steps=4",
    )  # fmt: skip


def record(results):
    (config,) = results.rglob("config.yaml")
    folder = RunFolder(config.parent)
    tables = [pd.read_parquet(file) for file in sorted(folder.allocation.glob("*.parquet"))]
    return folder, pd.concat(tables)[["step", "prompt", "n"]].reset_index(drop=True)


def test_a_killed_run_has_the_prompts_counts_and_budget_of_one_never_killed(settings, tmp_path):
    finish(start(tmp_path / "whole", settings))
    whole, expected = record(tmp_path / "whole")
    rows = read_metrics(whole.metrics)
    assert [row["step"] for row in rows][-1] == 4
    gaps = [row["engine/logp_gap"] for row in rows if row.get("engine/logp_gap") is not None]
    assert len(gaps) == 4
    assert max(gaps) < 1e-2
    process = start(tmp_path / "killed", settings)
    assert kill_when(process, lambda: bool(list((tmp_path / "killed").rglob("last.pt"))))
    time.sleep(2)  # the engine's process ends by itself
    output = finish(start(tmp_path / "killed", settings))
    killed, found = record(tmp_path / "killed")
    assert "samples may differ" in output
    pd.testing.assert_frame_equal(found, expected)
    last = [read_metrics(folder.metrics)[-1] for folder in (whole, killed)]
    assert last[0]["rollouts/total"] == last[1]["rollouts/total"]


def test_a_lost_engine_ends_the_run_after_its_checkpoint(settings, tmp_path):
    import psutil

    process = start(tmp_path, settings)

    def engine_is_lost():
        if not list(tmp_path.rglob("last.pt")):
            return False
        for child in psutil.Process(process.pid).children(recursive=True):
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()
                return True
        return False

    while process.poll() is None and not engine_is_lost():
        time.sleep(0.05)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1, output
    assert "Traceback" not in output
    assert "The process of the engine has ended with exit code -9" in output
    folder, _ = record(tmp_path)
    assert folder.state() == "failed"
    assert list(folder.checkpoints.glob("last.pt"))
