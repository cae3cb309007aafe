"""A maze run of seconds, and what two runs are compared by."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hydra
import pandas as pd
import torch
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from waterline.runs import read_metrics

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"

# 7×7 has 192 mazes in all. The base succeeds now and then, so that many groups are mixed.
TINY = (
    "task.size=7", "task.sft=96", "task.train=32", "task.dev=8", "task.test=8",
    "task.max_response=20",
    "policy.model.hidden_size=32", "policy.model.layers=2", "policy.model.heads=2",
    "policy.model.kv_heads=1", "policy.model.ffn=64", "policy.model.max_positions=128",
    "supervised.batch=16", "supervised.steps=100", "supervised.optimizer.lr=1e-2",
    "supervised.checkpoint_every=50",
    "training.batch=8", "training.steps=9", "training.optimizer.lr=1e-3",
    "allocation.n0=8", "allocation.n_max=32",
    "evaluation.every=4", "evaluation.n=8", "evaluation.ks=[1,8]", "evaluation.max_rows=32",
    "trainer.threads=1", "trainer.enable_progress_bar=false",
)  # fmt: skip


def compose(*overrides: str, experiment: str = "maze/laptop", method: str = "sera") -> dict:
    """The resolved configuration of an experiment and method."""
    GlobalHydra.instance().clear()
    chosen = [f"experiment={experiment}", f"method={method}", *overrides]
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        config: Any = OmegaConf.to_container(hydra.compose("train", overrides=chosen), resolve=True)
    return config


def tiny(results: Path, *overrides: str, method: str = "sera") -> tuple[dict, dict]:
    """The configuration of a tiny run below ``results``, and the one that names its folder."""
    config = compose(*TINY, f"paths.results={results}", *overrides, method=method)
    return config, compose(method=method)


def timeless(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of metrics without what depends on the clock."""
    return {
        key: value
        for key, value in row.items()
        if not key.startswith("time/") and key != "groups/mixed_per_second"
    }


def record(folder: Path) -> dict[str, Any]:
    """Everything that a run leaves behind but times."""
    allocation = [pd.read_parquet(file) for file in (folder / "allocation").glob("*.parquet")]
    counts = folder / "eval" / "counts.parquet"
    return {
        "metrics": [timeless(row) for row in read_metrics(folder / "metrics.jsonl")],
        "allocation": pd.concat(allocation).sort_values(["step", "prompt"]).to_dict("records")
        if allocation
        else [],
        "counts": pd.read_parquet(counts).to_dict("records") if counts.exists() else [],
        "checkpoints": {
            file.name: torch.load(file, weights_only=True)
            for file in sorted((folder / "checkpoints").glob("*.pt"))
        },
    }


def differences(a: Any, b: Any, where: str = "") -> list[str]:
    """Where two records differ in a single bit; NaN equals NaN."""
    if isinstance(a, torch.Tensor):
        same = isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
        return [] if same else [where]
    if isinstance(a, Mapping):
        if not isinstance(b, Mapping) or a.keys() != b.keys():
            return [f"{where}: {sorted(map(str, a))} and {sorted(map(str, b))}"]
        return [d for key in a for d in differences(a[key], b[key], f"{where}/{key}")]
    if isinstance(a, list | tuple):
        if len(a) != len(b):
            return [f"{where}: {len(a)} and {len(b)} items"]
        return [d for i, x in enumerate(a) for d in differences(x, b[i], f"{where}/{i}")]
    equal = a == b or (a != a and b != b)
    return [] if equal else [f"{where}: {a} and {b}"]
