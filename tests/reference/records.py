"""What a run leaves behind, and where two such records differ in a bit."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

# What of a checkpoint must be equal; other keys may come and go, and are noted.
STRICT = ("policy", "optimizer", "success", "done", "totals")


def timeless(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of metrics without what depends on the clock."""
    return {
        key: value
        for key, value in row.items()
        if not key.startswith("time/") and key != "groups/mixed_per_second"
    }


def run_folders(results: Path) -> dict[str, Path]:
    """The runs below ``results``, whatever their folders are called: 'base' and 'run'."""
    found: dict[str, Path] = {}
    for file in sorted(results.rglob("metrics.jsonl")):
        kind = "base" if "base" in file.relative_to(results).parts else "run"
        if kind in found:
            raise SystemExit(f"{results} holds two runs: {found[kind]} and {file.parent}.")
        found[kind] = file.parent
    return found


def record(folder: Path) -> dict[str, Any]:
    """All numbers that a run leaves behind but times: metrics, tables and checkpoints."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    parts = sorted(
        (pd.read_parquet(file) for file in folder.glob("allocation/*.parquet")),
        key=lambda frame: frame["step"].iloc[0],
    )
    tables = {
        str(file.relative_to(folder)): pd.read_parquet(file)
        for file in sorted(folder.rglob("*.parquet"))
        if file.parent.name != "allocation"
    }
    checkpoints = {
        file.name: torch.load(file, map_location="cpu", weights_only=True)
        for file in sorted(folder.glob("checkpoints/*.pt"))
    }
    return {
        "metrics": [timeless(json.loads(line)) for line in lines],
        "allocation": pd.concat(parts, ignore_index=True) if parts else None,
        **tables,
        "checkpoints": checkpoints,
    }


def same_bits(a: Any, b: Any) -> bool:
    """Whether two scalars are of one type and value; NaN equals NaN, 0 is not −0."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a.hex() == b.hex()
    return type(a) is type(b) and bool(a == b)


def differences(
    a: Any, b: Any, where: str = "", same: Callable[[Any, Any], bool] = same_bits
) -> Iterator[str]:
    """Where two values differ: dicts, lists, data frames, arrays, tensors and scalars.

    Tensors must have equal bits; ``same`` compares all other numbers.
    """
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        yield from _tensors(a, b, where)
    elif isinstance(a, pd.DataFrame) and isinstance(b, pd.DataFrame):
        columns = [{name: frame[name].to_numpy() for name in frame} for frame in (a, b)]
        yield from differences(*columns, where, same)
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.dtype != b.dtype:
            yield f"{where}: {a.dtype} and {b.dtype}"
        else:
            yield from differences(a.tolist(), b.tolist(), where, same)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in [*a, *(key for key in b if key not in a)]:
            place = f"{where}/{key}" if where else str(key)
            if key in a and key in b:
                yield from differences(a[key], b[key], place, same)
            else:
                yield f"{place}: only in the {'first' if key in a else 'second'}"
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            yield f"{where}: {len(a)} and {len(b)} items"
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            yield from differences(x, y, f"{where}[{i}]", same)
    elif not same(a, b):
        yield f"{where}: {a!r} and {b!r}"


def _tensors(a: torch.Tensor, b: torch.Tensor, where: str) -> Iterator[str]:
    if a.dtype != b.dtype or a.shape != b.shape:
        yield f"{where}: {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        return
    bits = [x.detach().contiguous().reshape(-1).view(torch.uint8) for x in (a, b)]
    if not torch.equal(*bits):
        apart = (a.double() - b.double()).abs().max()
        yield f"{where}: tensors differ by up to {float(apart):.3g}"


def compare_records(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The differences between two runs, and what of their checkpoints is only noted."""
    tables = [{key: value for key, value in x.items() if key != "checkpoints"} for x in (a, b)]
    found, notes = list(differences(*tables)), []
    states = a["checkpoints"], b["checkpoints"]
    for name in sorted({*states[0], *states[1]}):
        if not all(name in state for state in states):
            found.append(f"{name}: only in the {'first' if name in states[0] else 'second'}")
            continue
        apart, noted = _compare_states(states[0][name], states[1][name])
        found += [f"{name}/{line}" for line in apart]
        notes += [f"{name}/{line}" for line in noted]
    return found, notes


def _compare_states(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The differences between two checkpoints, and notes.

    Tensors of a policy that were renamed are compared in their order; of the totals, those that
    both have.
    """
    found, notes = [], _keys(a, b)
    for key in STRICT:
        x, y = _find(a, key), _find(b, key)
        if key == "totals" and x is not None and y is not None:
            notes += _keys(x, y, key)
            x, y = ({k: state[k] for k in x if k in y} for state in (x, y))
        if key == "policy" and x is not None and y is not None:
            names = _keys(x, y, key)
            notes += names
            if names and len(x) == len(y):
                x, y = list(x.values()), list(y.values())
        found += differences(x, y, key)
    rest = [key for key in a if key in b and key not in STRICT]
    notes += differences(*({key: state[key] for key in rest} for state in (a, b)))
    return found, notes


def _find(state: Any, key: str) -> Any:
    """What a checkpoint holds as ``key``, on whatever level of its dicts; None if nothing."""
    if not isinstance(state, Mapping):
        return None
    if key in state:
        return state[key]
    return next((v for v in (_find(part, key) for part in state.values()) if v is not None), None)


def _keys(a: Mapping[str, Any], b: Mapping[str, Any], where: str = "keys") -> list[str]:
    apart = {"first": [k for k in a if k not in b], "second": [k for k in b if k not in a]}
    return [f"{where}: {names} only in the {which}" for which, names in apart.items() if names]
