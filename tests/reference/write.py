"""A few steps of each task and method, as numbers small enough to store.

``python tests/reference/write.py`` runs them and writes ``values.json``, which
``tests/test_reference.py`` holds later versions to.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
VALUES = HERE / "values.json"
START_FROM = HERE / "base.pt"
if __name__ == "__main__":
    sys.path[:1] = [str(HERE.parent), str(HERE.parents[1] / "src")]  # as pytest has it

from reference.records import record  # noqa: E402
from training.tiny import tiny  # noqa: E402
from training.tiny_images import tiny_images  # noqa: E402
from waterline.training.run import train, train_base  # noqa: E402

# An epoch has two steps: the first is uniform, the second follows the history. The epsilon is as
# large as the gradients, so that Adam does not blow rounding up to steps of ±lr.
MAZE = (
    "task.train=16", "training.steps=4", "evaluation.every=2", "training.checkpoint_every=3",
    "training.optimizer.eps=1e-3", "training.optimizer.lr=5e-4",
)  # fmt: skip
START = ("supervised.steps=3", "+supervised.optimizer.eps=1e-3")
BASE = ("supervised.steps=300", "supervised.optimizer.lr=3e-3")
# Three steps an epoch, the last of two images.
IMAGES = (
    "task.train=10", "training.steps=4", "evaluation.every=2", "allocation.n0=8",
    "allocation.n_max=32",
)  # fmt: skip
# The method of each run, and overrides; 'base' is supervised training alone.
CASES = {
    "maze/base": ("base",),
    "maze/grpo": ("grpo",),
    "maze/maxrl": ("maxrl",),
    "maze/sera": ("sera",),
    "maze/sera_pilot": ("sera_pilot", "allocation.m=4"),
    "maze/pkpo": ("pkpo", "advantages.k=4"),
    "images/maxrl": ("maxrl",),
    "images/sera": ("sera",),
    "images/ce": ("ce",),
    "images/sera-beta": ("sera", "success=beta"),
}
# The gap between two ways to the same number is rounding, and nothing else.
ROUNDING = ("engine/logp_gap",)


def write_base() -> None:
    """Trains the policy that the maze cases start from, and keeps it in half precision.

    It is stored, since hundreds of steps would blow the rounding of another processor up.
    """
    with tempfile.TemporaryDirectory() as results:
        config, _ = tiny(Path(results), *BASE)
        state = torch.load(train_base(config).checkpoints / "final.pt", weights_only=True)
    torch.save({"policy": {name: w.half() for name, w in state["policy"].items()}}, START_FROM)


def run_case(name: str, results: Path) -> Path:
    """The folder of a finished run."""
    method, *overrides = CASES[name]
    if method == "base":
        return train_base(tiny(results, *START)[0]).root
    if name.startswith("maze/"):
        configs = tiny(results, *MAZE, f"base.path={START_FROM}", *overrides, method=method)
    else:
        configs = tiny_images(results, *IMAGES, *overrides, method=method)
    return train(*configs).root


def summary(folder: Path) -> dict[str, Any]:
    """Metrics and tables as columns, and one number for each tensor of the last weights.

    That number is the mean of |w_i| (1 + i/n) over the n entries: it changes with any of them and
    with their order, and nothing cancels in it.
    """
    left = record(folder)
    rows = left["metrics"]
    metrics = {key: [row.get(key) for row in rows] for row in rows for key in row}
    tables = {
        name: {column: frame[column].tolist() for column in frame}
        for name, frame in left.items()
        if name not in ("metrics", "checkpoints") and frame is not None
    }
    weights = {name: _size(w) for name, w in left["checkpoints"]["final.pt"]["policy"].items()}
    kept = {key: values for key, values in metrics.items() if key not in ROUNDING}
    return _short({"metrics": kept, **tables, "weights": weights})


def _size(tensor: torch.Tensor) -> float:
    values = tensor.double().abs().reshape(-1).numpy()
    return float((values * (1 + np.arange(len(values)) / len(values))).mean())


def _short(value: Any) -> Any:
    """Eight digits of each float: the comparison looks at five."""
    if isinstance(value, dict):
        return {key: _short(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_short(v) for v in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--base", action="store_true", help="train the policy to start from anew")
    if parser.parse_args().base:
        write_base()
    with tempfile.TemporaryDirectory() as results:
        values = {name: summary(run_case(name, Path(results))) for name in CASES}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items()]
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{VALUES}: {VALUES.stat().st_size} bytes")


if __name__ == "__main__":
    main()
